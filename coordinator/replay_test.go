package coordinator_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard/shardtest"
	"github.com/kcoord/kcoord/metadataversion"
)

type (
	groupHarness = shardtest.Harness[group.Request, state.Record, group.Response, struct{}]
	groupMachine = machine.Machine[group.Request, state.Record, group.Response, struct{}]
	groupChecked = shardtest.Checked[group.Request, state.Record, group.Response, struct{}]
)

var testConfig = group.Config{
	MinSessionTimeout:      6 * time.Second,
	MaxSessionTimeout:      30 * time.Minute,
	InitialRebalanceDelay:  3 * time.Second,
	MaxSize:                4,
	MetadataMaxChars:       10,
	Retention:              time.Hour,
	RetentionCheckInterval: time.Minute,
	ResidentOffsets:        5,
	LegacyTxnCommit:        group.AllowLegacy,
}

func newGroupHarness(v metadataversion.Version) *groupHarness {
	codec := &state.Codec{Versions: metadataversion.Writes(v, metadataversion.Defaults(v))}
	return shardtest.New(shardtest.Options[group.Request, state.Record, group.Response, struct{}]{
		Index: state.Index,
		Codec: codec,
		New: func() groupMachine {
			return groupChecked{Dumper: group.New(testConfig, rand.NewChaCha8([32]byte{}))}
		},
	})
}

// anyVersion is a finalized version: what it does not write must not be live.
var anyVersion = rapid.SampledFrom(slices.Collect(metadataversion.All()))

// client remembers what it was told, as a consumer does.
type client struct {
	group, id, instance string
	generation          int32
	lead                bool
	members             []string
}

// TestGroupsReplayToWhatTheyAre plays random scripts of several clients, groups,
// transactions and faults against the state machine of groups on an in-memory log, through the real
// bytes of its records. Whenever all is durable, what is live in memory is
// what a new machine gets from the log; no acknowledged commit is lost, and no aborted one seen;
// decisions leave hard state alone; and in the end every request is answered.
func TestGroupsReplayToWhatTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &script{
			t: t, h: newGroupHarness(anyVersion.Draw(t, "metadata.version")),
			committed: map[string][]*attempt{}, byName: map[string]then{}, open: map[int64][]*txnAttempt{},
		}
		s.h.Answered = func(name string, r group.Response, err error) {
			if f := s.byName[name]; f != nil && err == nil {
				f(r)
			}
		}
		for i := range 5 {
			c := &client{group: []string{"g", "h"}[i%2]}
			if i == 4 {
				c.instance = "static"
			}
			s.clients = append(s.clients, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"join":    func(t *rapid.T) { s.join(s.pick(t), t) },
			"sync":    func(t *rapid.T) { s.sync(s.pick(t)) },
			"beat":    func(t *rapid.T) { s.beat(s.pick(t)) },
			"leave":   func(t *rapid.T) { s.leave(s.pick(t)) },
			"commit":  func(t *rapid.T) { s.commit(s.pick(t), t) },
			"txn":     func(t *rapid.T) { s.txnCommit(s.pick(t), t) },
			"marker":  func(t *rapid.T) { s.marker(drawProducer(t), rapid.Bool().Draw(t, "commit")) },
			"clean":   func(*rapid.T) { s.h.Log.Clean(0, s.h.Now.Add(-time.Minute)) },
			"fetch":   func(t *rapid.T) { s.fetch(s.pick(t)) },
			"forget":  func(t *rapid.T) { s.forgetTopic(s.pick(t)) },
			"delete":  func(t *rapid.T) { s.deleteGroup(s.pick(t)) },
			"durable": func(t *rapid.T) { s.h.Sync() },
			"hold":    func(*rapid.T) { s.h.Log.Hold() },
			"release": func(t *rapid.T) { s.h.Log.Release(rapid.IntRange(1, 3).Draw(t, "steps")); s.h.Sync() },
			"fail":    func(t *rapid.T) { s.h.Log.FailNext(errors.New("injected"), rapid.Bool().Draw(t, "written")) },
			"advance": func(t *rapid.T) {
				s.h.Advance(rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 20 * time.Second, 40 * time.Minute}).Draw(t, "by"))
			},
			"crash": func(*rapid.T) { s.h.Crash() },
			"":      func(t *rapid.T) { s.compare(t) },
		})
		s.settle()
	})
}

// attempt is a commit (or, with gone, what may delete offsets) as its client knows it.
type attempt struct {
	offset int64
	gone   bool
	acked  bool
	txn    *txnAttempt // nil: it counts at once
}

// counts says whether the attempt, if it was written, may count, and whether it must.
func (a *attempt) counts() (may, must bool) {
	if a.txn == nil {
		return true, a.acked
	}
	return a.txn.committed, a.acked && !a.txn.pending && !a.txn.aborted
}

// txnAttempt is what may have become of a pending offset: the answers to
// markers get lost, too.
type txnAttempt struct{ pending, committed, aborted bool }

// resolve notes that a marker was sent.
func (a *txnAttempt) resolve(commit bool) {
	if a.pending {
		a.committed, a.aborted = a.committed || commit, a.aborted || !commit
	}
}

// then is what a client does with a response.
type then func(group.Response)

type script struct {
	t         *rapid.T
	h         *groupHarness
	clients   []*client
	seq       int
	byName    map[string]then
	committed map[string][]*attempt // group → attempts for topic t, partition 0
	open      map[int64][]*txnAttempt
}

func (s *script) pick(t *rapid.T) *client { return rapid.SampledFrom(s.clients).Draw(t, "client") }

func (s *script) ask(req group.Request, do then) string {
	s.seq++
	name := fmt.Sprintf("q%d", s.seq)
	s.byName[name] = do
	s.h.Ask(name, req)
	return name
}

func instanceOf(c *client) *string {
	if c.instance == "" {
		return nil
	}
	return &c.instance
}

func (s *script) join(c *client, t *rapid.T) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = c.group, c.id, instanceOf(c), "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 30_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "metadata"))}}
	s.ask(group.Join{Client: group.Client{ID: "c", Host: "/h"}, JoinGroupRequest: req, MemberIDRequired: true, SkipsAssignment: true}, func(r group.Response) {
		resp := r.(*kmsg.JoinGroupResponse)
		switch resp.ErrorCode {
		case 0:
			c.id, c.generation = resp.MemberID, resp.Generation
			c.lead = resp.LeaderID == resp.MemberID
			c.members = nil
			for _, m := range resp.Members {
				c.members = append(c.members, m.MemberID)
			}
		case 79: // MEMBER_ID_REQUIRED
			c.id = resp.MemberID
		default:
			c.id = ""
		}
	})
}

func (s *script) sync(c *client) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, instanceOf(c), c.generation
	for _, m := range c.members {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m, MemberAssignment: []byte("for " + m)})
	}
	s.ask(group.Sync{SyncGroupRequest: req}, nil)
}

func (s *script) beat(c *client) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, instanceOf(c), c.generation
	s.ask(group.Heartbeat{HeartbeatRequest: req}, nil)
}

func (s *script) leave(c *client) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = c.group
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: c.id, InstanceID: instanceOf(c)}}
	s.ask(group.Leave{LeaveGroupRequest: req}, func(group.Response) { c.id = "" })
}

func (s *script) commit(c *client, t *rapid.T) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, instanceOf(c), c.generation
	if rapid.Bool().Draw(t, "simple") {
		req.MemberID, req.InstanceID, req.Generation = "", nil, -1
	}
	keep := rapid.SampledFrom([]int64{-1, -1, -1, 5_000}).Draw(t, "retention")
	req.RetentionTimeMillis = keep
	a := &attempt{offset: int64(s.seq)}
	parts := []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: 0, Offset: a.offset, LeaderEpoch: 3, Metadata: kmsg.StringPtr("meta")},
		{Partition: 1, Offset: a.offset, LeaderEpoch: -1, Metadata: kmsg.StringPtr("far too long for this")},
		{Partition: 2, Offset: a.offset, LeaderEpoch: -1},
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: [16]byte{1}, Partitions: parts}}
	s.committed[c.group] = append(s.committed[c.group], a)
	if keep >= 0 { // it will go by itself
		s.committed[c.group] = append(s.committed[c.group], &attempt{gone: true})
	}
	s.ask(group.Commit{OffsetCommitRequest: req}, func(r group.Response) {
		a.acked = r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode == 0
	})
}

func drawProducer(t *rapid.T) int64 { return rapid.Int64Range(1, 2).Draw(t, "producer") }

// txnCommit is as commit, in a transaction.
func (s *script) txnCommit(c *client, t *rapid.T) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = c.group, c.id, instanceOf(c), c.generation
	req.ProducerID = drawProducer(t)
	if rapid.Bool().Draw(t, "simple") {
		req.MemberID, req.InstanceID, req.Generation = "", nil, -1
	}
	a := &attempt{offset: int64(s.seq), txn: &txnAttempt{pending: true}}
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{
		{Partition: 0, Offset: a.offset, LeaderEpoch: 3, Metadata: kmsg.StringPtr("meta")}, {Partition: 3, Offset: a.offset, LeaderEpoch: -1},
	}}}
	s.committed[c.group] = append(s.committed[c.group], a)
	s.open[req.ProducerID] = append(s.open[req.ProducerID], a.txn)
	s.ask(group.TxnCommit{TxnOffsetCommitRequest: req, Fences: true}, func(r group.Response) {
		a.acked = r.(group.TxnCommitted).Topics[0].Partitions[0].ErrorCode == 0
	})
}

func (s *script) marker(producer int64, commit bool) {
	open := s.open[producer]
	for _, a := range open {
		a.resolve(commit)
	}
	s.ask(group.Marker{Producer: producer, Commit: commit}, func(r group.Response) {
		if code := r.(group.Marked).ErrorCode; code != 0 {
			s.t.Fatalf("marker: %d", code)
		}
		for _, a := range open { // whatever was there before it is decided
			a.pending = false
		}
	})
}

func (s *script) fetchOf(g string) group.Fetch {
	req := kmsg.NewOffsetFetchRequestGroup()
	req.Group, req.MemberEpoch = g, -1
	return group.Fetch{OffsetFetchRequestGroup: &req}
}

func (s *script) fetch(c *client) { s.ask(s.fetchOf(c.group), nil) }

func (s *script) mayDelete(g string) { s.committed[g] = append(s.committed[g], &attempt{gone: true}) }

func (s *script) forgetTopic(c *client) {
	s.mayDelete(c.group)
	s.ask(group.ForgetTopics{Group: c.group, Topics: map[string][16]byte{"t": {}}}, nil)
}

func (s *script) deleteGroup(c *client) {
	s.mayDelete(c.group)
	s.ask(group.Delete{Group: c.group}, nil)
}

// compare: where everything is durable, live and replayed are the same.
func (s *script) compare(t *rapid.T) {
	if s.h.Log.Pending() > 0 || s.h.Machine == nil {
		return
	}
	fresh := group.New(testConfig, rand.NewChaCha8([32]byte{}))
	if err := s.h.Replay(fresh.Apply); err != nil {
		return // the log failed; it is read again at the next use
	}
	var live, replayed strings.Builder
	s.h.Machine.(groupChecked).Dump(&live)
	fresh.Dump(&replayed)
	for _, g := range strings.SplitAfter(live.String(), "group ") { // groups that are not in memory are left out
		if !strings.Contains(replayed.String(), strings.TrimSuffix(g, "group ")) {
			t.Fatalf("live:\n%s\nreplayed:\n%s", live.String(), replayed.String())
		}
	}
}

// settle: all becomes durable, nobody asks any more, and every request is answered.
func (s *script) settle() {
	s.h.Log.Release(-1)
	for range 20 {
		s.h.Sync()
		s.h.Advance(time.Minute)
	}
	s.h.Sync()
	s.marker(1, true)
	s.marker(2, false)
	s.h.Sync()
	if open := s.h.Open(); len(open) > 0 {
		s.t.Fatalf("never answered: %v", open)
	}
	for _, g := range []string{"g", "h"} {
		name := s.ask(s.fetchOf(g), nil)
		s.h.Sync()
		a, ok := s.h.Answers[name]
		if !ok || a.Err != nil {
			s.t.Fatalf("fetch: %+v, answered: %t", a, ok)
		}
		s.checkOffset(g, a.Resp.(*kmsg.OffsetFetchResponseGroup))
	}
}

func (s *script) checkOffset(g string, resp *kmsg.OffsetFetchResponseGroup) {
	got := int64(-1)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Partition == 0 {
				got = p.Offset
			}
		}
	}
	as := s.committed[g]
	if len(as) > 0 && s.h.Now.Sub(shardtest.Start) >= testConfig.Retention {
		as = append(as, &attempt{gone: true})
	}
	for i := len(as) - 1; i >= 0; i-- {
		a := as[i]
		may, must := a.counts()
		switch {
		case a.gone && got == -1, !a.gone && may && a.offset == got:
			return
		case must:
			s.t.Fatalf("group %s: offset %d, and %d was acknowledged", g, got, a.offset)
		}
	}
	if got != -1 {
		s.t.Fatalf("group %s: offset %d, which nobody committed", g, got)
	}
}
