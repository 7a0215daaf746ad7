package coordinator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage/memlog"
)

// signalled says whether a watcher heard of something since it was last asked.
func signalled(changed <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestWatchersHearOfChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		changed, stop := n.Watch("g")
		other, stopOther := n.Watch("other")
		defer stopOther()
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 1))
		if !signalled(changed) {
			t.Error("a new group")
		}
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 2))
		do[*kmsg.DescribeGroupsResponseGroup](t, n, group.Describe{Group: "g"})
		if signalled(changed) {
			t.Error("a commit changes neither state nor members")
		}
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = "g", "consumer", 10_000, 10_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		do[*kmsg.JoinGroupResponse](t, n, group.Join{Client: group.Client{ID: "c", Host: "/h"}, JoinGroupRequest: req})
		if !signalled(changed) || signalled(changed) {
			t.Error("many changes are one signal to who does not listen")
		}
		time.Sleep(time.Minute) // of the bubble's clock: the member is silent
		if !signalled(changed) {
			t.Error("a member was thrown out")
		}
		if signalled(other) {
			t.Error("another group")
		}
		stop()
		stop()
		do[*kmsg.DeleteGroupsResponseGroup](t, n, group.Delete{Group: "g"})
		if signalled(changed) {
			t.Error("after stop")
		}
		if w := &n.watched[ShardOf("g", len(n.shards))]; len(w.of) > 1 {
			t.Errorf("%d groups are watched", len(w.of))
		}
	})
}

func TestStatsOutliveAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		changed, stop := n.Watch("g")
		defer stop()
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 1))
		do[*kmsg.OffsetCommitResponse](t, n, commit("h", "t", 1))
		before := n.Stats()
		signalled(changed)
		b.FailNext(errors.New("disk"), false)
		failed := make(chan error, 1)
		n.Group(commit("g", "t", 2), func(_ group.Response, err error) { failed <- err })
		if err := <-failed; !errors.Is(err, ErrNotCoordinator) {
			t.Fatalf("a failed append: %v", err)
		}
		if !signalled(changed) {
			t.Error("nobody is told of a lost shard")
		}
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 3))
		after := n.Stats()
		if before.Counters.OffsetCommits != 2 || after.Counters.OffsetCommits != 4 { // that which failed was decided
			t.Errorf("%d commits, then %d", before.Counters.OffsetCommits, after.Counters.OffsetCommits)
		}
		if k := (group.Kind{Protocol: "classic", State: "Empty"}); after.Groups[k] != 2 {
			t.Errorf("groups: %v", after.Groups)
		}
		if after.Loads.Count != 5 || after.Open != 4 || after.Resident == 0 {
			t.Errorf("%+v", after)
		}
		if opened, all := n.Opened(); opened != 4 || all != 4 {
			t.Errorf("%d of %d are open", opened, all)
		}
	})
}

func TestConfigureCountsForLaterMachinesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(state.Index)
		n := openTest(t, b)
		defer func() { n.Close(); b.Close() }()
		do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 1))
		c := n.o.Group
		c.Retention = time.Minute
		n.Configure(c)
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		if got := offset(t, n, "g", "t"); got != -1 {
			t.Errorf("an offset outlived its retention: %d", got)
		}
	})
}
