package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openTest(t *testing.T, b storage.Backend) *Node {
	t.Helper()
	n, err := Open(Options{Backend: b, Shards: 4, Log: zerolog.Nop(), Group: group.Config{
		MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: time.Hour, InitialRebalanceDelay: 3 * time.Second,
		MaxSize: 100, MetadataMaxChars: 4096, Retention: time.Hour, RetentionCheckInterval: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// do asks and waits, in fake time.
func do[T any](t *testing.T, n *Node, req group.Request) T {
	t.Helper()
	ch := make(chan T, 1)
	n.Group(req, func(r group.Response, err error) {
		if err != nil {
			t.Errorf("%T: %v", req, err)
		}
		ch <- r.(T)
	})
	return <-ch
}

func commit(groupID, topic string, offset int64) group.Commit {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = groupID, -1, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: offset, LeaderEpoch: -1}}}}
	return group.Commit{OffsetCommitRequest: req}
}

// offset is what is committed for partition 0 of a topic, -1 for nothing.
func offset(t *testing.T, n *Node, groupID, topic string) int64 {
	t.Helper()
	req := kmsg.NewOffsetFetchRequestGroup()
	req.Group, req.MemberEpoch = groupID, -1
	req.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{0}}}
	return do[*kmsg.OffsetFetchResponseGroup](t, n, group.Fetch{OffsetFetchRequestGroup: &req}).Topics[0].Partitions[0].Offset
}

func TestCommitsOfManyGroupsSurviveACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		for i := range 20 {
			do[*kmsg.OffsetCommitResponse](t, n, commit(fmt.Sprint("g", i), "t", int64(i)))
		}
		b = b.Crash()
		n.Close()
		n = openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		for i := range 20 {
			if got := offset(t, n, fmt.Sprint("g", i), "t"); got != int64(i) {
				t.Errorf("g%d: %d", i, got)
			}
		}
		listed := 0
		done := make(chan struct{})
		n.EachGroup(group.List{}, func(rs []group.Response, err error) {
			for _, r := range rs {
				listed += len(r.([]kmsg.ListGroupsResponseGroup))
			}
			close(done)
		})
		if <-done; listed != 20 {
			t.Errorf("%d groups are listed", listed)
		}
	})
}

func TestTheClockEndsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = "g", "consumer", 10_000, 10_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		start := time.Now()
		joined := do[*kmsg.JoinGroupResponse](t, n, group.Join{Client: group.Client{ID: "c", Host: "/h"}, JoinGroupRequest: req})
		if took := time.Since(start); joined.ErrorCode != 0 || took != 3*time.Second {
			t.Fatalf("joined after %s: %+v", took, joined)
		}
		members := func() int {
			return len(do[*kmsg.DescribeGroupsResponseGroup](t, n, group.Describe{Group: "g"}).Members)
		}
		time.Sleep(9 * time.Second) // of the bubble's clock
		if got := members(); got != 1 {
			t.Errorf("%d members before the session is over", got)
		}
		time.Sleep(2 * time.Second)
		if got := members(); got != 0 {
			t.Errorf("%d members after the session is over", got)
		}
	})
}

func TestForgetTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		for _, g := range []string{"a", "b", "c"} {
			do[*kmsg.OffsetCommitResponse](t, n, commit(g, "t", 1))
			do[*kmsg.OffsetCommitResponse](t, n, commit(g, "kept", 2))
		}
		gone, err := n.ForgetTopics(map[string][16]byte{"t": {}})
		if err != nil || gone != 3 {
			t.Fatalf("%d offsets, %v", gone, err)
		}
		if got := offset(t, n, "b", "t"); got != -1 {
			t.Errorf("the deleted topic's offset is %d", got)
		}
		if got := offset(t, n, "b", "kept"); got != 2 {
			t.Errorf("the other topic's offset is %d", got)
		}
	})
}

// TestAFailedAppendIsAFailoverInPlace: the waiter is told, and asks again from
// its reply, as a client's next request would.
func TestAFailedAppendIsAFailoverInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 1))
		b.FailNext(errors.New("injected"), false)
		again := make(chan error, 1)
		n.Group(commit("g", "t", 2), func(_ group.Response, err error) {
			if !errors.Is(err, ErrNotCoordinator) {
				t.Errorf("the failed append was answered with %v", err)
			}
			n.Group(commit("g", "t", 3), func(_ group.Response, err error) { again <- err })
		})
		if err := <-again; err != nil {
			t.Error(err)
		}
		if got := offset(t, n, "g", "t"); got != 3 {
			t.Errorf("offset %d", got)
		}
	})
}

// TestAnUnreadableRecordQuarantinesItsGroupAlone writes bytes that no version reads beside good ones.
func TestAnUnreadableRecordQuarantinesItsGroupAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		do[*kmsg.OffsetCommitResponse](t, n, commit("good", "t", 1))
		do[*kmsg.OffsetCommitResponse](t, n, commit("bad", "t", 1))
		n.Close()
		k := groupmeta.OffsetCommitKey{Group: "bad", Topic: "t", Partition: 7}
		key, err := k.AppendTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		log, err := b.Open(ShardOf("bad", 4), func(storage.Offset, error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append([]storage.Record{{Key: key, Value: []byte{0, 3, 1}, Time: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		n = openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		if got := offset(t, n, "good", "t"); got != 1 {
			t.Errorf("the good group's offset is %d", got)
		}
		req := kmsg.NewOffsetFetchRequestGroup()
		req.Group, req.MemberEpoch = "bad", -1
		if got := do[*kmsg.OffsetFetchResponseGroup](t, n, group.Fetch{OffsetFetchRequestGroup: &req}); got.ErrorCode != 14 {
			t.Errorf("the bad group is answered %+v", got)
		}
		if got := n.Stats().Counters.Quarantined; got != 1 {
			t.Errorf("%d groups in quarantine", got)
		}
	})
}

func TestCloseTellsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		b.Hold()
		told := make(chan error, 1)
		n.Group(commit("g", "t", 1), func(_ group.Response, err error) { told <- err })
		n.Close()
		if err := <-told; !errors.Is(err, ErrNotCoordinator) {
			t.Errorf("told %v", err)
		}
		n.Group(commit("g", "t", 1), func(_ group.Response, err error) { told <- err })
		if err := <-told; !errors.Is(err, ErrNotCoordinator) {
			t.Errorf("after Close, told %v", err)
		}
		b.Close()
	})
}

// TestReadsStayWithinTheBound: what was read is dropped again, also where nothing is
// written, after which it would be.
func TestReadsStayWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		defer b.Close()
		const groups = 60
		n := openTest(t, b)
		for i := range groups {
			do[*kmsg.OffsetCommitResponse](t, n, commit(fmt.Sprint("g", i), "t", int64(i)))
		}
		o := n.o
		n.Close()
		o.Group.ResidentOffsets = 4 // of each of four shards: two groups with an offset
		n, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		for i := range groups {
			if got := offset(t, n, fmt.Sprint("g", i), "t"); got != int64(i) {
				t.Fatalf("g%d: %d", i, got)
			}
		}
		if got := n.Stats().Resident; got > 4*4 {
			t.Errorf("%d groups and offsets are in memory", got)
		}
	})
}
