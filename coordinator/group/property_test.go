package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// TestScriptsAtRandom runs random scripts with crashes anywhere. The harness
// itself sees to it that no step touches the hard state, that no request is
// answered twice and that the timers of one moment come to an end.
func TestScriptsAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(func(f string, a ...any) { t.Fatalf(f, a...) })
		h.cfg.MaxSize = rapid.IntRange(1, 5).Draw(t, "max size")
		h.cfg.InitialRebalanceDelay = time.Duration(rapid.IntRange(0, 3).Draw(t, "initial delay")) * time.Second
		h.cfg.Retention = time.Minute
		h.cfg.RetentionCheckInterval = 10 * time.Second
		h.cfg.ResidentOffsets = rapid.SampledFrom([]int{1, 4, 1000}).Draw(t, "resident offsets")
		h.open()
		w := walk{t: t, h: h, generation: map[string]int32{}}
		h.seen = w.see
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			w.step()
			h.said()
			w.replayed()
			if at, any := h.m.NextTimer(); any && len(h.m.timers.heap) > 60 {
				t.Fatalf("%d timers, the next at %v", len(h.m.timers.heap), at)
			}
		}
		h.advance(time.Hour)
		if len(h.waiting) > 0 {
			t.Fatalf("never answered: %v\n%s", h.waiting, h.said())
		}
		w.replayed()
		if any := len(h.m.timers.heap); any > 0 {
			t.Fatalf("%d timers of nobody", any)
		}
	})
}

// walk draws the steps of a script. It remembers what clients remember.
type walk struct {
	t          *rapid.T
	h          *harness
	members    []string // ids that were given out
	generation map[string]int32
}

func (w *walk) see(_ string, resp Response) {
	if j, is := resp.(*kmsg.JoinGroupResponse); is && j.MemberID != "" {
		if _, known := w.generation[j.MemberID]; !known {
			w.members = append(w.members, j.MemberID)
		}
		w.generation[j.MemberID] = j.Generation
	}
}

func (w *walk) group() string { return rapid.SampledFrom([]string{"g", "h"}).Draw(w.t, "group") }

// member is an id, mostly a recent one, and its generation.
func (w *walk) member() (string, int32) {
	recent := append([]string{"", "nobody"}, w.members[max(len(w.members)-4, 0):]...)
	id := rapid.SampledFrom(recent).Draw(w.t, "member")
	gen, known := w.generation[id]
	if !known {
		gen = -1
	}
	return id, gen + int32(rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(w.t, "generation"))
}

func (w *walk) instance() *string {
	return rapid.SampledFrom([]*string{nil, nil, nil, ptrTo("i1"), ptrTo("i2")}).Draw(w.t, "instance")
}

func ptrTo(s string) *string { return &s }

func (w *walk) step() {
	switch rapid.SampledFrom([]string{
		"join", "join", "join", "sync", "sync", "heartbeat", "leave", "commit", "commit", "fetch", "delete offsets",
		"describe", "delete", "forget", "list", "advance", "advance", "crash",
	}).Draw(w.t, "step") {
	case "join":
		w.join()
	case "sync":
		r := kmsg.NewPtrSyncGroupRequest()
		r.Group, r.InstanceID = w.group(), w.instance()
		r.MemberID, r.Generation = w.member()
		for _, id := range w.members {
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(id)})
		}
		w.h.do("sync", Sync{r})
	case "heartbeat":
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.InstanceID = w.group(), w.instance()
		r.MemberID, r.Generation = w.member()
		w.h.do("heartbeat", Heartbeat{r})
	case "leave":
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Group = w.group()
		for range rapid.IntRange(1, 2).Draw(w.t, "leaving") {
			id, _ := w.member()
			r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: id, InstanceID: w.instance()})
		}
		w.h.do("leave", Leave{r})
	case "commit":
		w.commit()
	case "fetch":
		w.h.do("fetch", Fetch{&kmsg.OffsetFetchRequestGroup{Group: w.group()}, false})
	case "delete offsets":
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = w.group()
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: w.topic(), Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 1}}}}
		w.h.do("delete offsets", DeleteOffsets{r})
	case "describe":
		w.h.do("describe", Describe{w.group()})
	case "delete":
		w.h.do("delete", Delete{w.group()})
	case "forget":
		w.h.do("forget", ForgetTopics{w.group(), []string{w.topic()}})
	case "list":
		w.h.do("list", List{})
		w.h.do("ids", IDs{})
		w.h.do("quarantined", Quarantined{})
	case "advance":
		w.h.advance(time.Duration(rapid.SampledFrom([]int{0, 1, 500, 3000, 10_000, 60_000}).Draw(w.t, "ms")) * time.Millisecond)
	case "crash":
		w.h.open()
	}
}

func (w *walk) topic() string { return rapid.SampledFrom([]string{"t", "u"}).Draw(w.t, "topic") }

func (w *walk) join() {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.InstanceID = w.group(), w.instance()
	r.MemberID, _ = w.member()
	r.ProtocolType = rapid.SampledFrom([]string{"consumer", "consumer", "consumer", "connect"}).Draw(w.t, "type")
	r.SessionTimeoutMillis = int32(rapid.SampledFrom([]int{500, 3000, 10_000}).Draw(w.t, "session"))
	r.RebalanceTimeoutMillis = int32(rapid.SampledFrom([]int{0, 1000, 5000}).Draw(w.t, "rebalance"))
	for p := range strings.FieldsSeq(rapid.SampledFrom([]string{"range", "range sticky", "sticky range", "sticky"}).Draw(w.t, "protocols")) {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: []byte(subscriptionOf(w.topic()))})
	}
	v9 := rapid.Bool().Draw(w.t, "v9")
	w.h.do("join", Join{Client{"c", "/127.0.0.1"}, r, v9, v9})
}

func (w *walk) commit() {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.InstanceID = w.group(), w.instance()
	r.MemberID, r.Generation = w.member()
	r.RetentionTimeMillis = rapid.SampledFrom([]int64{-1, -1, 0, 5000}).Draw(w.t, "retention")
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition = int32(rapid.IntRange(0, 1).Draw(w.t, "partition"))
	p.Offset = int64(len(w.h.log))
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: w.topic(), Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	w.h.do("commit", Commit{r})
}

// replayed checks that the durable records give the hard state that is live: all
// of them in order, and as the log gives them back, the latest of each key.
func (w *walk) replayed() {
	all, latest := state.NewGroups(), state.NewGroups()
	for i, r := range w.h.log {
		all.Apply(storage.Offset(i), r)
	}
	for _, id := range w.h.groups() {
		for _, i := range w.h.latest(id) {
			latest.Apply(storage.Offset(i), w.h.log[i])
		}
	}
	want := dumped(all)
	if got := dumped(latest); got != want {
		w.t.Fatalf("latest records:\n%s\nall:\n%s", got, want)
	}
	for _, id := range w.h.m.sorted() {
		if w.h.m.Has(id) {
			if got, want := dumpedGroup(w.h.m.hard, id), dumpedGroup(all, id); got != want {
				w.t.Fatalf("live:\n%s\nreplayed:\n%s", got, want)
			}
		}
	}
}

func dumped(s *state.Groups) string {
	var b strings.Builder
	s.Dump(&b)
	return b.String()
}

func dumpedGroup(s *state.Groups, id string) string {
	g := s.Group(id)
	if g == nil {
		return fmt.Sprintf("no group %q", id)
	}
	var b strings.Builder
	g.Dump(&b)
	return b.String()
}
