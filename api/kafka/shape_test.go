package kafka

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

var ptr = kmsg.StringPtr

// always replies the same, to whatever is asked.
func always(resp group.Response, err error) func(group.Request) (group.Response, error, bool) {
	return func(group.Request) (group.Response, error, bool) { return resp, err, true }
}

func TestJoinByVersion(t *testing.T) {
	var resp *kmsg.JoinGroupResponse
	var fail error
	s := newStage(t, func(group.Request) (group.Response, error, bool) {
		if fail != nil {
			return nil, fail, true
		}
		r := *resp
		return &r, nil, true
	})
	c := s.client()
	for v := int16(0); v <= 9; v++ {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.MemberID, req.ProtocolType, req.InstanceID = "g", "m", "consumer", ptr("i")
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10, 20
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("meta")}}
		r := kmsg.NewPtrJoinGroupResponse()
		r.MemberID, r.LeaderID, r.Generation, r.ErrorCode, r.ProtocolType = "m", "m", 3, 0, ptr("consumer")
		resp, fail = r, nil
		got := do[*kmsg.JoinGroupResponse](c, v, req)
		asked := s.coord.last().(group.Join)
		if want := map[bool]int32{true: 10, false: 20}[v == 0]; asked.RebalanceTimeoutMillis != want {
			t.Errorf("v%d: rebalance timeout %d", v, asked.RebalanceTimeoutMillis)
		}
		if asked.MemberIDRequired != (v >= 4) || asked.SkipsAssignment != (v >= 9) || (asked.InstanceID != nil) != (v >= 5) {
			t.Errorf("v%d: asked %+v", v, asked)
		}
		if asked.Client != (group.Client{ID: "tester", Host: "/127.0.0.1"}) || string(asked.Protocols[0].Metadata) != "meta" {
			t.Errorf("v%d: asked %+v", v, asked)
		}
		if (got.Protocol == nil) != (v >= 7) || got.Generation != 3 {
			t.Errorf("v%d: got %+v", v, got)
		}
		for _, fail = range []error{coordinator.ErrLoading, coordinator.ErrNotCoordinator} {
			got := do[*kmsg.JoinGroupResponse](c, v, req)
			if got.ErrorCode != code(fail) || got.Generation != -1 || (got.Protocol == nil) != (v >= 7) {
				t.Errorf("v%d: %v is %+v", v, fail, got)
			}
		}
	}
}

func TestSyncByVersion(t *testing.T) {
	s := newStage(t, yes)
	c := s.client()
	for v := int16(0); v <= 5; v++ {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Group = "g"
		before := s.coord.count()
		got := do[*kmsg.SyncGroupResponse](c, v, req)
		if want := map[bool]int16{true: kerr.InconsistentGroupProtocol.Code}[v >= 5]; got.ErrorCode != want {
			t.Errorf("v%d without protocol names: %d", v, got.ErrorCode)
		}
		if asked := s.coord.count() > before; asked == (v >= 5) {
			t.Errorf("v%d: the coordinator was asked: %v", v, asked)
		}
		req.ProtocolType, req.Protocol = ptr("consumer"), ptr("range")
		do[*kmsg.SyncGroupResponse](c, v, req)
		if asked := s.coord.last().(group.Sync); (asked.Protocol != nil) != (v >= 5) {
			t.Errorf("v%d: asked %+v", v, asked)
		}
	}
}

func TestHeartbeatWhileLoading(t *testing.T) {
	for err, want := range map[error]int16{
		coordinator.ErrLoading:        0,
		coordinator.ErrNotCoordinator: codeNotCoordinator,
		errors.New("a bug"):           kerr.UnknownServerError.Code,
	} {
		s := newStage(t, always(nil, err))
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation, req.InstanceID = "g", "m", 4, ptr("i")
		for v := int16(0); v <= 4; v++ {
			if got := do[*kmsg.HeartbeatResponse](s.client(), v, req); got.ErrorCode != want {
				t.Errorf("v%d: %v is %d", v, err, got.ErrorCode)
			}
			asked := s.coord.last().(group.Heartbeat)
			if asked.Group != "g" || asked.MemberID != "m" || asked.Generation != 4 || (asked.InstanceID != nil) != (v >= 3) {
				t.Errorf("v%d: asked %+v", v, asked)
			}
		}
	}
}

func TestLeaveByVersion(t *testing.T) {
	var top int16
	s := newStage(t, func(req group.Request) (group.Response, error, bool) {
		out := kmsg.NewPtrLeaveGroupResponse()
		if out.ErrorCode = top; top == 0 {
			for _, m := range req.(group.Leave).Members {
				out.Members = append(out.Members, kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, ErrorCode: codeUnknownMember})
			}
		}
		return out, nil, true
	})
	for _, top = range []int16{0, kerr.InvalidGroupID.Code} {
		for v := int16(0); v <= 5; v++ {
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group, req.MemberID = "g", "m"
			if v >= 3 {
				req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "m"}, {MemberID: "n"}}
			}
			got := do[*kmsg.LeaveGroupResponse](s.client(), v, req)
			want := &kmsg.LeaveGroupResponse{Version: v, ErrorCode: top}
			switch {
			case top != 0:
			case v < 3:
				want.ErrorCode = codeUnknownMember
			default:
				want.Members = []kmsg.LeaveGroupResponseMember{{MemberID: "m", ErrorCode: codeUnknownMember}, {MemberID: "n", ErrorCode: codeUnknownMember}}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("v%d: %+v", v, got)
			}
		}
	}
}

// commitOf makes an OffsetCommit of topic: partitions.
func commitOf(topics ...kmsg.OffsetCommitRequestTopic) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation, req.Topics = "g", "m", 2, topics
	req.RetentionTimeMillis = 99
	return req
}

func topicOf(name string, id [16]byte, parts ...int32) kmsg.OffsetCommitRequestTopic {
	t := kmsg.OffsetCommitRequestTopic{Topic: name, TopicID: id}
	for _, p := range parts {
		t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 5, LeaderEpoch: 8, Metadata: ptr(fmt.Sprint("meta", p))})
	}
	return t
}

// shown is an OffsetCommit's answer as one line.
func shownCommit(r *kmsg.OffsetCommitResponse) (s string) {
	for _, t := range r.Topics {
		if s += t.Topic; r.Version >= 10 {
			s += fmt.Sprintf("%x", t.TopicID[:1])
		}
		for _, p := range t.Partitions {
			s += fmt.Sprintf(" %d:%d", p.Partition, p.ErrorCode)
		}
		s += "; "
	}
	return s
}

func TestCommitByVersion(t *testing.T) {
	s := newStage(t, yes)
	id := s.topic("t")
	for v := int16(2); v <= 10; v++ {
		c := s.client()
		got := do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id, 0, 1)))
		name := "t"
		if v >= 10 {
			name = fmt.Sprintf("%x", id[:1])
		}
		if want := name + " 0:0 1:0; "; shownCommit(got) != want {
			t.Errorf("v%d: %s, not %s", v, shownCommit(got), want)
		}
		asked := s.coord.last().(group.Commit)
		// The memory is used again after the answer, so only what stands is looked at.
		if asked.Group != "g" || asked.MemberID != "m" || asked.Generation != 2 {
			t.Errorf("v%d: asked %+v", v, asked)
		}
		if want := map[bool]int64{true: 99, false: -1}[v <= 4]; asked.RetentionTimeMillis != want {
			t.Errorf("v%d: retention %d", v, asked.RetentionTimeMillis)
		}
		// Nothing is left: nobody is asked.
		before := s.coord.count()
		got = do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("none", [16]byte{1}, 0), topicOf("t", id, 7)))
		want := "none 0:3; t 7:3; "
		if v >= 10 {
			want = "01 0:100; " + name + " 7:3; "
		}
		if shownCommit(got) != want || s.coord.count() != before {
			t.Errorf("v%d: %s, not %s; asked %d more", v, shownCommit(got), want, s.coord.count()-before)
		}
		if got = do[*kmsg.OffsetCommitResponse](c, v, commitOf()); len(got.Topics) != 0 || s.coord.count() != before {
			t.Errorf("v%d: %s to nothing at all", v, shownCommit(got))
		}
		// Without partitions an unknown topic is named, and one that is known is not.
		got = do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id), topicOf("none", [16]byte{1})))
		want = map[bool]string{true: "01; ", false: "none; "}[v >= 10]
		if shownCommit(got) != want || s.coord.count() != before {
			t.Errorf("v%d: %s, not %s", v, shownCommit(got), want)
		}
		// Some is left.
		got = do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id, 7, 1), topicOf("none", [16]byte{1}, 0)))
		want = "t 7:3 1:0; none 0:3; "
		if v >= 10 {
			want = name + " 7:3 1:0; 01 0:100; "
		}
		if shownCommit(got) != want {
			t.Errorf("v%d: %s, not %s", v, shownCommit(got), want)
		}
		// A topic that is named twice is answered as one where anything failed, and what failed first.
		got = do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id, 0, 7), topicOf("t", id, 1, 8)))
		if want = name + " 7:3 8:3 0:0 1:0; "; shownCommit(got) != want {
			t.Errorf("v%d: %s, not %s", v, shownCommit(got), want)
		}
		got = do[*kmsg.OffsetCommitResponse](c, v, commitOf(topicOf("t", id, 0), topicOf("t", id, 1)))
		if want = name + " 0:0; " + name + " 1:0; "; shownCommit(got) != want {
			t.Errorf("v%d: %s, not %s", v, shownCommit(got), want)
		}
	}
}

func TestCommitErrorsByVersion(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int16 // of the group, where err is nil
		want func(v int16) int16
	}{
		{coordinator.ErrNotCoordinator, 0, func(int16) int16 { return 16 }},
		{coordinator.ErrLoading, 0, func(int16) int16 { return 14 }},
		{nil, codeGroupNotFound, func(v int16) int16 {
			if v < 9 {
				return codeIllegalGeneration
			}
			return codeGroupNotFound
		}},
		{nil, codeUnknownMember, func(int16) int16 { return codeUnknownMember }},
	} {
		s := newStage(t, func(req group.Request) (group.Response, error, bool) {
			resp, _, _ := yes(req)
			for _, t := range resp.(*kmsg.OffsetCommitResponse).Topics {
				for i := range t.Partitions {
					t.Partitions[i].ErrorCode = tc.code
				}
			}
			return resp, tc.err, true
		})
		id := s.topic("t")
		for v := int16(2); v <= 10; v++ {
			got := do[*kmsg.OffsetCommitResponse](s.client(), v, commitOf(topicOf("t", id, 1, 9), topicOf("none", [16]byte{1}, 0)))
			other := int16(3)
			if v >= 10 {
				other = 100
			}
			if got.Topics[0].Partitions[1].ErrorCode != tc.want(v) || got.Topics[0].Partitions[0].ErrorCode != 3 || got.Topics[1].Partitions[0].ErrorCode != other {
				t.Errorf("v%d of %+v: %s", v, tc, shownCommit(got))
			}
			if v >= 10 && got.Topics[0].TopicID != id {
				t.Errorf("v%d: %s", v, shownCommit(got))
			}
		}
	}
}

// fetchOf makes an OffsetFetch in the shape of its version; nil parts ask for all.
func fetchOf(v int16, id [16]byte, groups ...string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = groups[0], true
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}
	for _, name := range groups {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = name
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", TopicID: id, Partitions: []int32{0, 1}}}
		if v >= 10 {
			g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{TopicID: [16]byte{1}, Partitions: []int32{4}})
		}
		req.Groups = append(req.Groups, g)
	}
	return req
}

func TestFetchByVersion(t *testing.T) {
	s := newStage(t, yes)
	id := s.topic("t")
	for v := int16(1); v <= 10; v++ {
		got := do[*kmsg.OffsetFetchResponse](s.client(), v, fetchOf(v, id, "g"))
		asked := s.coord.last().(group.Fetch)
		if asked.Group != "g" || asked.RequireStable != (v >= 7) || len(asked.Topics) != 1 || asked.Topics[0].Topic != "t" {
			t.Errorf("v%d: asked %+v", v, asked.OffsetFetchRequestGroup)
		}
		if v < 8 {
			p := got.Topics[0].Partitions[1]
			epoch := int32(3)
			if v < 5 {
				epoch = -1
			}
			if got.Topics[0].Topic != "t" || p.Partition != 1 || p.Offset != 7 || p.LeaderEpoch != epoch || len(got.Groups) != 0 {
				t.Errorf("v%d: %+v", v, got)
			}
			continue
		}
		g := got.Groups[0]
		if g.Group != "g" || g.Topics[0].Partitions[1].Offset != 7 || (g.Topics[0].Topic == "t") != (v < 10) {
			t.Errorf("v%d: %+v", v, g)
		}
		if v >= 10 {
			p := g.Topics[1].Partitions[0]
			if g.Topics[0].TopicID != id || p.ErrorCode != 100 || p.Offset != -1 || p.Partition != 4 || *p.Metadata != "" {
				t.Errorf("v%d: %+v", v, g)
			}
		}
	}
}

func TestFetchErrorsByVersion(t *testing.T) {
	s := newStage(t, always(nil, coordinator.ErrLoading))
	id := s.topic("t")
	for v := int16(1); v <= 10; v++ {
		got := do[*kmsg.OffsetFetchResponse](s.client(), v, fetchOf(v, id, "g"))
		switch {
		case v == 1:
			for i, p := range got.Topics[0].Partitions {
				if p.ErrorCode != 14 || p.Offset != -1 || p.Partition != int32(i) {
					t.Errorf("v1: %+v", p)
				}
			}
		case v < 8:
			if got.ErrorCode != 14 || len(got.Topics) != 0 {
				t.Errorf("v%d: %+v", v, got)
			}
		default:
			if got.ErrorCode != 0 || got.Groups[0].ErrorCode != 14 || got.Groups[0].Group != "g" {
				t.Errorf("v%d: %+v", v, got)
			}
		}
	}
}

// All topics: null, from version 2 on. And several groups, in their order.
func TestFetchAllAndSeveral(t *testing.T) {
	s := newStage(t, func(req group.Request) (group.Response, error, bool) {
		f := req.(group.Fetch)
		if f.Group == "bad" {
			return nil, coordinator.ErrNotCoordinator, true
		}
		out := kmsg.NewOffsetFetchResponseGroup()
		if f.Topics == nil {
			out.Topics = []kmsg.OffsetFetchResponseGroupTopic{{Topic: "t"}, {Topic: "deleted"}}
		}
		return &out, nil, true
	})
	id := s.topic("t")
	for v := int16(1); v <= 10; v++ {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Topics = nil
		for _, g := range []string{"a", "bad", "b"} {
			req.Groups = append(req.Groups, kmsg.OffsetFetchRequestGroup{Group: g, MemberEpoch: -1})
		}
		got := do[*kmsg.OffsetFetchResponse](s.client(), v, req)
		switch {
		case v < 2:
			if len(got.Topics) != 0 {
				t.Errorf("v%d: %+v", v, got)
			}
		case v < 8:
			if len(got.Topics) != 2 {
				t.Errorf("v%d: %+v", v, got)
			}
		case v < 10:
			if len(got.Groups) != 3 || got.Groups[1].ErrorCode != 16 || got.Groups[2].Group != "b" || len(got.Groups[0].Topics) != 2 {
				t.Errorf("v%d: %+v", v, got)
			}
		default: // what has no id does not exist
			if len(got.Groups) != 3 || len(got.Groups[2].Topics) != 1 || got.Groups[2].Topics[0].TopicID != id {
				t.Errorf("v%d: %+v", v, got)
			}
		}
	}
}

func TestDescribeByVersion(t *testing.T) {
	s := newStage(t, func(req group.Request) (group.Response, error, bool) {
		d := req.(group.Describe)
		switch d.Group {
		case "none":
			return &kmsg.DescribeGroupsResponseGroup{Group: "none", State: "Dead", ErrorCode: codeGroupNotFound}, nil, true
		case "bad":
			return nil, coordinator.ErrLoading, true
		}
		return &kmsg.DescribeGroupsResponseGroup{Group: d.Group, State: "Empty"}, nil, true
	})
	for v := int16(0); v <= 6; v++ {
		for _, include := range []bool{false, true} {
			req := kmsg.NewPtrDescribeGroupsRequest()
			req.Groups, req.IncludeAuthorizedOperations = []string{"g", "none", "bad", "g"}, include
			got := do[*kmsg.DescribeGroupsResponse](s.client(), v, req)
			var codes []int16
			var ops []int32
			for _, g := range got.Groups {
				codes, ops = append(codes, g.ErrorCode), append(ops, g.AuthorizedOperations)
			}
			wantCodes, wantOps := []int16{0, 0, 14, 0}, []int32{math.MinInt32, math.MinInt32, math.MinInt32, math.MinInt32}
			if v >= 3 && include {
				wantOps = []int32{3400, 3400, math.MinInt32, 3400}
			}
			if v >= 6 {
				wantCodes[1], wantOps[1] = codeGroupNotFound, math.MinInt32
				if *got.Groups[1].ErrorMessage != "Group none not found." {
					t.Errorf("v%d: message %q", v, *got.Groups[1].ErrorMessage)
				}
			}
			if !slices.Equal(codes, wantCodes) || !slices.Equal(ops, wantOps) || got.Groups[2].Group != "bad" {
				t.Errorf("v%d: %v %v", v, codes, ops)
			}
		}
	}
	if got := do[*kmsg.DescribeGroupsResponse](s.client(), 5, kmsg.NewPtrDescribeGroupsRequest()); len(got.Groups) != 0 {
		t.Error(got)
	}
}

func TestListByVersion(t *testing.T) {
	s := newStage(t, yes)
	for v := int16(0); v <= 5; v++ {
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter, req.TypesFilter = []string{"stable", "EMPTY", "Nonsense", ""}, []string{"Classic", "CONSUMER", "x"}
		got := do[*kmsg.ListGroupsResponse](s.client(), v, req)
		if len(got.Groups) != 2 || got.Groups[0].Group != "a" || got.Groups[1].Group != "b" {
			t.Errorf("v%d: %+v", v, got)
		}
		asked := s.coord.last().(group.List)
		states, types := req.StatesFilter, req.TypesFilter
		if v < 4 {
			states = nil
		}
		if v < 5 {
			types = nil
		}
		if !slices.Equal(asked.States, states) || !slices.Equal(asked.Types, types) {
			t.Errorf("v%d: asked %+v", v, asked)
		}
	}
	long := []kmsg.ListGroupsResponseGroup{{Group: strings.Repeat("g", 1<<15)}, {Group: "h"}}
	damaged := newStage(t, always([]group.Response{long}, nil))
	for v := int16(0); v <= 5; v++ {
		if got := do[*kmsg.ListGroupsResponse](damaged.client(), v, kmsg.NewPtrListGroupsRequest()); len(got.Groups) != 1 || got.Groups[0].Group != "h" {
			t.Errorf("v%d: %d groups with one that no version can name", v, len(got.Groups))
		}
	}
	loading := newStage(t, always(nil, coordinator.ErrLoading))
	if got := do[*kmsg.ListGroupsResponse](loading.client(), 5, kmsg.NewPtrListGroupsRequest()); got.ErrorCode != 14 {
		t.Error(got)
	}
}

func TestDeleteGroups(t *testing.T) {
	s := newStage(t, func(req group.Request) (group.Response, error, bool) {
		if d := req.(group.Delete); d.Group == "bad" {
			return nil, coordinator.ErrNotCoordinator, true
		}
		return yes(req)
	})
	for v := int16(0); v <= 3; v++ {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"a", "bad", "a", "b"}
		before := s.coord.count()
		got := do[*kmsg.DeleteGroupsResponse](s.client(), v, req)
		if s.coord.count()-before != 3 || len(got.Groups) != 3 || got.Groups[0].Group != "a" || got.Groups[1].ErrorCode != 16 || got.Groups[2].Group != "b" {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}

func TestOffsetDelete(t *testing.T) {
	var top int16
	s := newStage(t, func(req group.Request) (group.Response, error, bool) {
		resp, _, _ := yes(req)
		if top != 0 {
			return &kmsg.OffsetDeleteResponse{ErrorCode: top}, nil, true
		}
		return resp, nil, true
	})
	s.topic("t")
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = "g"
	for _, topic := range []string{"none", "t"} {
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 9}}})
	}
	for _, topic := range []string{"nor this", "t"} { // without partitions one that is unknown is named
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic})
	}
	// One that is named twice is answered once where anything failed.
	req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}}})
	got := do[*kmsg.OffsetDeleteResponse](s.client(), 0, req)
	want := &kmsg.OffsetDeleteResponse{Topics: []kmsg.OffsetDeleteResponseTopic{
		{Topic: "none", Partitions: []kmsg.OffsetDeleteResponseTopicPartition{{Partition: 0, ErrorCode: 3}, {Partition: 9, ErrorCode: 3}}},
		{Topic: "t", Partitions: []kmsg.OffsetDeleteResponseTopicPartition{{Partition: 9, ErrorCode: 3}, {Partition: 0}, {Partition: 1}}},
		{Topic: "nor this"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(s.srv.m.errors)
	if all, err := r.Gather(); err != nil || len(all) != 1 || all[0].Metric[0].Counter.GetValue() != 3 {
		t.Errorf("of three failures %v were counted, %v", all, err)
	}
	top = codeGroupNotFound
	if got := do[*kmsg.OffsetDeleteResponse](s.client(), 0, req); got.ErrorCode != top || len(got.Topics) != 0 {
		t.Errorf("%+v", got)
	}
}
