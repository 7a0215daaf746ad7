package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/groupmeta"
)

type groups struct {
	adminpb.UnimplementedGroupsServer
	ask      Coordinator
	broker   *Broker
	draining <-chan struct{}
	watching chan struct{} // one place for each stream
}

func (g *groups) each(ctx context.Context, req group.Request) ([]group.Response, error) {
	return await(ctx, func(reply func([]group.Response, error)) { g.ask.EachGroup(req, reply) })
}

// ListGroups asks every shard. States and types that are none are the caller's mistake.
func (g *groups) ListGroups(ctx context.Context, req *adminpb.ListGroupsRequest) (*adminpb.ListGroupsResponse, error) {
	list := group.List{States: req.GetStates(), Types: req.GetTypes()}
	if err := list.Mistaken(); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	shards, err := g.each(ctx, list)
	if err != nil {
		return nil, err
	}
	resp := &adminpb.ListGroupsResponse{}
	for _, s := range shards {
		for _, l := range s.([]kmsg.ListGroupsResponseGroup) {
			resp.Groups = append(resp.Groups, &adminpb.ListedGroup{
				Group: l.Group, State: l.GroupState, Type: l.GroupType, ProtocolType: l.ProtocolType,
			})
		}
	}
	slices.SortFunc(resp.Groups, func(a, b *adminpb.ListedGroup) int { return cmp.Compare(a.Group, b.Group) })
	return resp, nil
}

// DescribeGroups asks the shard of each group.
func (g *groups) DescribeGroups(ctx context.Context, req *adminpb.DescribeGroupsRequest) (*adminpb.DescribeGroupsResponse, error) {
	resp := &adminpb.DescribeGroupsResponse{}
	for _, id := range req.GetGroups() {
		o, err := askOne[group.Observed](ctx, g.ask, group.Observe{Group: id})
		if err != nil {
			return nil, err
		}
		d := described(o)
		if req.GetOffsets() && o.ErrorCode == 0 {
			if d.Offsets, err = committedOffsets(ctx, g.ask, id, nil); err != nil {
				return nil, err
			}
			d.Uncommitted = uncommitted(d.Members, d.Offsets)
			d.EndsUnknown = locate(ctx, g.broker, slices.Concat(d.Offsets, d.Uncommitted))
		}
		resp.Groups = append(resp.Groups, d)
	}
	return resp, nil
}

func described(from group.Observed) *adminpb.DescribedGroup {
	g := &adminpb.DescribedGroup{
		Group: from.Group, ErrorCode: int32(from.ErrorCode), Generation: from.Generation,
		State: from.State, ProtocolType: from.ProtocolType, Protocol: from.Protocol,
	}
	if e := kerr.TypedErrorForCode(from.ErrorCode); e != nil {
		g.Error = e.Message
	}
	for _, m := range from.Members {
		g.Members = append(g.Members, member(m, from.ProtocolType == "consumer"))
	}
	return g
}

func member(m kmsg.DescribeGroupsResponseGroupMember, consumer bool) *adminpb.Member {
	out := &adminpb.Member{
		MemberId: m.MemberID, ClientId: m.ClientID, ClientHost: m.ClientHost, RawAssignment: m.MemberAssignment,
	}
	if m.InstanceID != nil {
		out.InstanceId = *m.InstanceID
	}
	if consumer {
		out.Assignment = assigned(m.MemberAssignment)
	}
	return out
}

// DeleteGroup asks the group's shard, and who is in the way where it refuses.
func (g *groups) DeleteGroup(ctx context.Context, req *adminpb.DeleteGroupRequest) (*adminpb.DeleteGroupResponse, error) {
	id := req.GetGroup()
	deleted, err := askOne[*kmsg.DeleteGroupsResponseGroup](ctx, g.ask, group.Delete{Group: id})
	if err != nil {
		return nil, err
	}
	if deleted.ErrorCode == kerr.NonEmptyGroup.Code {
		o, err := askOne[group.Observed](ctx, g.ask, group.Observe{Group: id})
		if err != nil {
			return nil, err
		}
		return nil, inUse(id, o.State, o.Members, nil)
	}
	return &adminpb.DeleteGroupResponse{}, coded(deleted.ErrorCode, id)
}

// assigned reads what consumers' assignors write. Bytes that are something else
// are shown raw alone.
func assigned(raw []byte) []*adminpb.TopicPartitions {
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(raw) != nil {
		return nil
	}
	var topics []*adminpb.TopicPartitions
	for _, t := range a.Topics {
		topics = append(topics, &adminpb.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
	}
	return topics
}

// ListQuarantined asks every shard.
func (g *groups) ListQuarantined(ctx context.Context, _ *adminpb.ListQuarantinedRequest) (*adminpb.ListQuarantinedResponse, error) {
	shards, err := g.each(ctx, group.Quarantined{})
	if err != nil {
		return nil, err
	}
	resp := &adminpb.ListQuarantinedResponse{}
	for _, s := range shards {
		for _, q := range s.([]group.Quarantine) {
			resp.Groups = append(resp.Groups, quarantined(q))
		}
	}
	slices.SortFunc(resp.Groups, func(a, b *adminpb.QuarantinedGroup) int { return cmp.Compare(a.Group, b.Group) })
	return resp, nil
}

func quarantined(q group.Quarantine) *adminpb.QuarantinedGroup {
	g := &adminpb.QuarantinedGroup{Group: q.Group}
	for _, p := range q.Problems {
		kind := "unknown"
		if t, err := groupmeta.TypeOfKey(p.Key); err == nil {
			kind = t.String()
		}
		g.Records = append(g.Records, &adminpb.UnreadableRecord{Type: kind, Key: p.Key, Value: p.Value, Problem: p.Err.Error()})
	}
	return g
}
