package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

// TestStringsAsInJava asks with strings that are no UTF-8: what the coordinator is asked, and
// would keep, is what the records of it would be read as.
func TestStringsAsInJava(t *testing.T) {
	const bad, want = "a\xed\xa0\x80b\xff", "a\ufffdb\ufffd"
	s := newStage(t, always(nil, coordinator.ErrLoading))
	s.topic("t")
	c := s.client()
	join, sync := kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest()
	join.Group, join.MemberID, join.InstanceID, join.ProtocolType = bad, bad, ptr(bad), bad
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: bad, Metadata: []byte(bad)}}
	sync.Group, sync.MemberID, sync.InstanceID, sync.ProtocolType, sync.Protocol = bad, bad, ptr(bad), ptr(bad), ptr(bad)
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: bad, MemberAssignment: []byte(bad)}}
	leave, describe, remove := kmsg.NewPtrLeaveGroupRequest(), kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrDeleteGroupsRequest()
	leave.Group, leave.Members = bad, []kmsg.LeaveGroupRequestMember{{MemberID: bad, InstanceID: ptr(bad)}}
	describe.Groups, remove.Groups = []string{bad}, []string{bad}
	fetch, commit, heartbeat := kmsg.NewPtrOffsetFetchRequest(), commitOf(topicOf("t", [16]byte{}, 0)), beat(bad)
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: bad, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: bad, Partitions: []int32{0}}}}}
	commit.Group, commit.MemberID, commit.InstanceID = bad, bad, ptr(bad)
	commit.Topics[0].Partitions[0].Metadata = ptr(bad)
	heartbeat.MemberID, heartbeat.InstanceID = bad, ptr(bad)

	for _, tc := range []struct {
		version int16
		req     kmsg.Request
		show    func(group.Request) string
	}{
		{9, join, func(r group.Request) string {
			j := r.(group.Join)
			return fmt.Sprint(j.Group, j.MemberID, *j.InstanceID, j.ProtocolType, j.Protocols[0].Name, strings.Contains(string(j.Protocols[0].Metadata), bad))
		}},
		{5, sync, func(r group.Request) string {
			y := r.(group.Sync)
			return fmt.Sprint(y.Group, y.MemberID, *y.InstanceID, *y.Protocol, y.GroupAssignment[0].MemberID, string(y.GroupAssignment[0].MemberAssignment) == bad)
		}},
		{4, heartbeat, func(r group.Request) string {
			h := r.(group.Heartbeat)
			return fmt.Sprint(h.Group, h.MemberID, *h.InstanceID)
		}},
		{5, leave, func(r group.Request) string {
			l := r.(group.Leave)
			return fmt.Sprint(l.Group, l.Members[0].MemberID, *l.Members[0].InstanceID)
		}},
		{9, commit, func(r group.Request) string { return r.(group.Commit).Group }},
		{8, fetch, func(r group.Request) string {
			f := r.(group.Fetch)
			return fmt.Sprint(f.Group, f.Topics[0].Topic)
		}},
		{5, describe, func(r group.Request) string { return r.(group.Describe).Group }},
		{2, remove, func(r group.Request) string { return r.(group.Delete).Group }},
	} {
		do[kmsg.Response](c, tc.version, tc.req)
		got := tc.show(s.coord.last())
		if rest := strings.ReplaceAll(got, want, ""); strings.Trim(rest, " ") != "" && strings.Trim(rest, " ") != "true" {
			t.Errorf("%s: asked %q", kmsg.NameForKey(tc.req.Key()), got)
		}
	}
}

// TestTooLongStrings asks with strings that no answer in an older version has room for, once
// because they become longer by being read.
func TestTooLongStrings(t *testing.T) {
	join, commit := joinOf("g"), commitOf(topicOf("t", [16]byte{}, 0))
	for name, tc := range map[string]struct {
		version int16
		req     kmsg.Request
		set     *string
	}{
		"Heartbeat":    {4, beat(""), nil},
		"JoinGroup":    {5, join, &join.MemberID},
		"OffsetCommit": {7, commit, &commit.Topics[0].Topic},
	} {
		for _, long := range []string{strings.Repeat("a", longest), strings.Repeat("\xff", longest/3), strings.Repeat("\xff", longest/3+1)} {
			if tc.set == nil {
				tc.req.(*kmsg.HeartbeatRequest).MemberID = long
			} else {
				*tc.set = long
			}
			s := newStage(t, always(nil, coordinator.ErrLoading))
			c := s.client()
			c.send(tc.version, tc.req)
			_, _, err := c.raw()
			if fits := len(strings.ToValidUTF8(long, "")) > 0 || 3*len(long) <= longest; (err == nil) != fits {
				t.Errorf("%s with %d bytes: %v", name, len(long), err)
			}
		}
	}
}

// Topics may be as short as their names and have no partitions.
func TestCommitOfNothing(t *testing.T) {
	s := newStage(t, yes)
	id := s.topic("t")
	c := s.client()
	for v := int16(2); v <= 10; v++ {
		got := do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id), topicOf("t", id), topicOf("t", id)))
		if len(got.Topics) != 0 {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}
