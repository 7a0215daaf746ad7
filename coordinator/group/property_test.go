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
		h.cfg.LegacyTxnCommitOf = map[string]LegacyPolicy{"h": AllowLegacy}
		h.cfg.ResidentOffsets = rapid.SampledFrom([]int{1, 4, 1000}).Draw(t, "resident offsets")
		h.open()
		w := walk{t: t, h: h}
		h.seen = w.see
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			w.step()
			h.said()
			w.replayed()
			if at, armed := h.m.NextTimer(); armed && len(h.m.timers.Items) > 60 {
				t.Fatalf("%d timers, the next at %v", len(h.m.timers.Items), at)
			}
		}
		h.advance(time.Hour)
		if len(h.waiting) > 0 {
			t.Fatalf("never answered: %v\n%s", h.waiting, h.said())
		}
		w.replayed()
		if n := len(h.m.timers.Items); n > 0 {
			t.Fatalf("%d timers of nobody", n)
		}
	})
}

// walk draws the steps of a script. It remembers what clients remember, and
// mostly has them say what they should.
type walk struct {
	t       *rapid.T
	h       *harness
	clients []*client
	joining *client // the one whose join is being handled
}

// client is one that got a member id.
type client struct {
	group, id  string
	generation int32
	instance   *string
}

func (w *walk) see(_ string, resp Response) {
	j, is := resp.(*kmsg.JoinGroupResponse)
	if !is || j.MemberID == "" {
		return
	}
	for _, c := range w.clients {
		if c.id == j.MemberID {
			c.generation = j.Generation
			return
		}
	}
	if w.joining != nil {
		c := *w.joining
		c.id, c.generation = j.MemberID, j.Generation
		w.clients = append(w.clients, &c)
	}
}

func (w *walk) group() string { return rapid.SampledFrom([]string{"g", "g", "h"}).Draw(w.t, "group") }

// seldom is true for one of so many.
func (w *walk) seldom(what string, of int) bool { return rapid.IntRange(1, of).Draw(w.t, what) == of }

// client is one that knows who it is, mostly, and which generation it is in.
func (w *walk) client() client {
	if len(w.clients) == 0 || w.seldom("stranger", 12) {
		return client{group: w.group(), id: rapid.SampledFrom([]string{"", "nobody"}).Draw(w.t, "id"), generation: -1, instance: w.instance()}
	}
	c := *rapid.SampledFrom(w.recent()).Draw(w.t, "client")
	if w.seldom("wrong generation", 10) {
		c.generation += int32(rapid.SampledFrom([]int{-1, 1}).Draw(w.t, "generation"))
	}
	if w.seldom("wrong instance", 12) {
		c.instance = w.instance()
	}
	return c
}

// recent are the clients that may be members still.
func (w *walk) recent() []*client { return w.clients[max(len(w.clients)-5, 0):] }

func (w *walk) instance() *string {
	return rapid.SampledFrom([]*string{nil, nil, ptrTo("i1"), ptrTo("i2")}).Draw(w.t, "instance")
}

func ptrTo(s string) *string { return &s }

func (w *walk) step() {
	switch rapid.SampledFrom([]string{
		"new", "new", "all join", "all join", "some sync", "some sync", "join", "join", "join", "join", "sync", "sync", "sync", "sync", "heartbeat", "leave", "commit", "commit", "fetch",
		"txn commit", "txn commit", "txn commit", "marker", "marker", "fetch stable",
		"delete offsets", "describe", "delete", "forget", "list", "advance", "advance", "advance", "advance", "crash", "unreadable",
	}).Draw(w.t, "step") {
	case "new":
		w.join(client{group: w.group(), instance: w.instance()})
	case "join":
		w.join(w.client())
	case "all join":
		for _, c := range w.recent() {
			w.join(*c)
		}
	case "some sync":
		for _, c := range w.recent() {
			if rapid.Bool().Draw(w.t, "syncs") {
				w.sync(*c)
			}
		}
	case "sync":
		w.sync(w.client())
	case "heartbeat":
		c, r := w.client(), kmsg.NewPtrHeartbeatRequest()
		r.Group, r.InstanceID, r.MemberID, r.Generation = c.group, c.instance, c.id, c.generation
		w.h.do("heartbeat", Heartbeat{r})
	case "leave":
		r := kmsg.NewPtrLeaveGroupRequest()
		for range rapid.IntRange(1, 2).Draw(w.t, "leaving") {
			c := w.client()
			r.Group = c.group
			r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: c.id, InstanceID: c.instance})
		}
		w.h.do("leave", Leave{r})
	case "commit":
		w.commit()
	case "txn commit":
		w.txnCommit()
	case "marker":
		w.h.do("marker", Marker{w.producer(), w.epoch(), rapid.Bool().Draw(w.t, "commit"), 3, rapid.SampledFrom([]int16{0, 2}).Draw(w.t, "version")})
	case "fetch stable":
		w.h.do("fetch", Fetch{OffsetFetchRequestGroup: &kmsg.OffsetFetchRequestGroup{Group: w.group()}, RequireStable: true})
	case "fetch":
		w.h.do("fetch", Fetch{OffsetFetchRequestGroup: &kmsg.OffsetFetchRequestGroup{Group: w.group()}, RequireStable: false})
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
		w.h.do("forget", ForgetTopics{w.group(), map[string][16]byte{w.topic(): {}}})
	case "list":
		w.h.do("list", List{})
		w.h.do("ids", IDs{})
		w.h.do("quarantined", Quarantined{})
	case "advance":
		ms := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 500, 3000, 10_000, 60_000}).Draw(w.t, "ms")
		w.h.advance(time.Duration(ms) * time.Millisecond)
	case "crash":
		w.h.open()
	case "unreadable":
		id := w.group()
		w.h.need(id)
		r := state.Record{Kind: state.KindUnreadable, Group: id, Key: []byte("k"), Value: []byte("v"), Tombstone: !w.seldom("bad", 4)}
		if rapid.Bool().Draw(w.t, "in a transaction") {
			r.Txn = storage.Txn{Producer: w.producer(), Epoch: w.epoch(), Kind: storage.Pending}
		}
		w.h.apply(r)
	}
}

func (w *walk) producer() int64 { return rapid.Int64Range(1, 2).Draw(w.t, "producer") }

func (w *walk) epoch() int16 { return int16(rapid.IntRange(0, 1).Draw(w.t, "epoch")) }

func (w *walk) topic() string { return rapid.SampledFrom([]string{"t", "u"}).Draw(w.t, "topic") }

func (w *walk) join(c client) {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.InstanceID, r.MemberID, r.ProtocolType = c.group, c.instance, c.id, "consumer"
	if w.seldom("other type", 12) {
		r.ProtocolType = "connect"
	}
	r.SessionTimeoutMillis = int32(rapid.SampledFrom([]int{500, 3000, 10_000}).Draw(w.t, "session"))
	r.RebalanceTimeoutMillis = int32(rapid.SampledFrom([]int{0, 1000, 5000}).Draw(w.t, "rebalance"))
	for p := range strings.FieldsSeq(rapid.SampledFrom([]string{"range", "range sticky", "sticky range", "sticky"}).Draw(w.t, "protocols")) {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: []byte(subscriptionOf(w.topic()))})
	}
	v9 := rapid.Bool().Draw(w.t, "v9")
	w.joining = &c
	w.h.do("join", Join{Client{"c", "/127.0.0.1"}, r, v9, v9})
	w.h.advance(0)
	w.joining = nil
}

func (w *walk) sync(c client) {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.InstanceID, r.MemberID, r.Generation = c.group, c.instance, c.id, c.generation
	for _, o := range w.recent() {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: o.id, MemberAssignment: []byte(o.id)})
	}
	w.h.do("sync", Sync{r})
}

func (w *walk) commit() {
	c, r := w.client(), kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.InstanceID, r.MemberID, r.Generation = c.group, c.instance, c.id, c.generation
	r.RetentionTimeMillis = rapid.SampledFrom([]int64{-1, -1, 0, 5000}).Draw(w.t, "retention")
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition = int32(rapid.IntRange(0, 1).Draw(w.t, "partition"))
	p.Offset = int64(len(w.h.log))
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: w.topic(), Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	w.h.do("commit", Commit{r})
}

func (w *walk) txnCommit() {
	c, r := w.client(), kmsg.NewPtrTxnOffsetCommitRequest()
	r.Group, r.InstanceID, r.MemberID, r.Generation = c.group, c.instance, c.id, c.generation
	r.ProducerID, r.ProducerEpoch = w.producer(), w.epoch()
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition = int32(rapid.IntRange(0, 1).Draw(w.t, "partition"))
	p.Offset = int64(len(w.h.log))
	r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: w.topic(), Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	w.h.do("txn commit", TxnCommit{r, true})
}

// replayed checks that the durable records give the hard state that is live: all
// of them in order, and as the log gives them back, the latest of each key.
func (w *walk) replayed() {
	all, latest := state.NewGroups(), state.NewGroups()
	for i, r := range w.h.log {
		all.Apply(storage.Offset(i), &r)
	}
	for id, recs := range w.h.stored() {
		for _, l := range recs {
			latest.Apply(l.at, &l.rec)
			if l.rec.Txn.Kind == storage.Pending && !w.h.m.Has(id) {
				w.t.Fatalf("group %q has pending offsets and is not in memory", id)
			}
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
