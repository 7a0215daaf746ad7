package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
)

// planning is one plan in the making.
type planning struct {
	group     string
	committed map[place]int64
	logs      map[string]map[int32]span
	at        kadm.ListedOffsets // of a timestamp
	set       map[place]*adminpb.OffsetToSet
	unasked   error // why the logs of some partitions are not known
}

// PlanOffsets refuses what apply would: there is no use in planning for a group in use, but for
// deletions of offsets that its members do not read.
func (o *offsets) PlanOffsets(ctx context.Context, req *adminpb.PlanOffsetsRequest) (*adminpb.OffsetsPlan, error) {
	d, err := askOne[group.Observed](ctx, o.ask, group.Observe{Group: req.GetGroup()})
	if err != nil {
		return nil, err
	}
	if !deletes(req) && (len(d.Members) > 0 || d.State != "Empty" && d.ErrorCode == 0) {
		return nil, inUse(req.GetGroup(), d.State, d.Members, nil)
	}
	p, places, err := o.prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	plan := &adminpb.OffsetsPlan{Group: p.group, State: d.State}
	for _, at := range places {
		c, err := p.change(req, at)
		if err != nil {
			return nil, err
		}
		plan.Changes = append(plan.Changes, c)
	}
	if deletes(req) { // which may be of topics that no member reads
		if err := o.set(ctx, plan, true); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

func deletes(req *adminpb.PlanOffsetsRequest) bool {
	_, is := req.GetTarget().(*adminpb.PlanOffsetsRequest_Delete)
	return is
}

// prepare finds out what is to be changed and all that must be known for it.
func (o *offsets) prepare(ctx context.Context, req *adminpb.PlanOffsetsRequest) (*planning, []place, error) {
	p := &planning{group: req.GetGroup(), committed: map[place]int64{}}
	all, err := fetch(ctx, o.ask, p.group)
	if err != nil {
		return nil, nil, err
	}
	topics := map[string]bool{}
	for _, t := range all.Topics {
		for _, c := range t.Partitions {
			p.committed[place{t.Topic, c.Partition}] = c.Offset
			topics[t.Topic] = topics[t.Topic] || len(req.GetPartitions()) == 0
		}
	}
	for _, t := range req.GetPartitions() {
		topics[t.GetTopic()] = true
	}
	if set, is := req.GetTarget().(*adminpb.PlanOffsetsRequest_Set); is {
		clear(topics)
		for _, s := range set.Set.GetOffsets() {
			topics[s.GetTopic()] = true
		}
	}
	maps.DeleteFunc(topics, func(_ string, wanted bool) bool { return !wanted })
	names := slices.Sorted(maps.Keys(topics))
	if topics[""] {
		return nil, nil, status.Error(codes.InvalidArgument, "a topic without a name")
	}
	if !deletes(req) && len(names) > 0 {
		p.logs, p.unasked = o.broker.spans(ctx, names)
	}
	if t, is := req.GetTarget().(*adminpb.PlanOffsetsRequest_Timestamp); is && len(names) > 0 {
		if t.Timestamp < 0 { // to a broker these are names: -1 is the end
			return nil, nil, status.Error(codes.InvalidArgument, "the time is before 1970: ask for where the logs begin instead (earliest)")
		}
		if p.at, err = o.broker.at(ctx, t.Timestamp, names); err != nil {
			p.unasked = err
		}
	}
	if p.unasked != nil && !single(req) {
		return nil, nil, status.Error(codes.Unavailable, p.unasked.Error())
	}
	places, err := p.places(req)
	return p, places, err
}

// single says whether a plan is for partitions that are named one by one. For others that may be
// there too, all logs must be known.
func single(req *adminpb.PlanOffsetsRequest) bool {
	if _, is := req.GetTarget().(*adminpb.PlanOffsetsRequest_Set); is {
		return true
	}
	return len(req.GetPartitions()) > 0 && !slices.ContainsFunc(req.GetPartitions(), func(t *adminpb.TopicPartitions) bool {
		return len(t.GetPartitions()) == 0
	})
}

// places are the partitions to change, by topic and number.
func (p *planning) places(req *adminpb.PlanOffsetsRequest) ([]place, error) {
	chosen := map[place]bool{}
	switch target := req.GetTarget().(type) {
	case nil:
		return nil, status.Error(codes.InvalidArgument, "to where? A plan needs a target")
	case *adminpb.PlanOffsetsRequest_Set:
		p.set = map[place]*adminpb.OffsetToSet{}
		for _, s := range target.Set.GetOffsets() {
			at := place{s.GetTopic(), s.GetPartition()}
			if chosen[at] || s.GetOffset() < 0 {
				return nil, status.Errorf(codes.InvalidArgument, "%s-%d: one offset, from 0 on", at.topic, at.partition)
			}
			chosen[at], p.set[at] = true, s
		}
	case *adminpb.PlanOffsetsRequest_Delete:
		for at := range p.committed {
			if selected(req.GetPartitions(), at.topic, at.partition) {
				chosen[at] = true
			}
		}
		for _, t := range req.GetPartitions() {
			for _, n := range t.GetPartitions() {
				if at := (place{t.GetTopic(), n}); !chosen[at] {
					return nil, status.Errorf(codes.NotFound, "group %q has no offset of %s-%d", p.group, at.topic, at.partition)
				}
			}
		}
	default:
		p.choose(req.GetPartitions(), chosen)
	}
	if len(chosen) == 0 {
		return nil, status.Errorf(codes.NotFound, "group %q has no such offsets", p.group)
	}
	return slices.SortedFunc(maps.Keys(chosen), place.compare), nil
}

// choose takes the partitions that are named, or that have offsets.
func (p *planning) choose(named []*adminpb.TopicPartitions, chosen map[place]bool) {
	for _, t := range named {
		for _, n := range t.GetPartitions() {
			chosen[place{t.GetTopic(), n}] = true
		}
		if len(t.GetPartitions()) > 0 {
			continue
		}
		if p.logs[t.GetTopic()] == nil {
			chosen[place{t.GetTopic(), 0}] = true // to be told that there is no such topic
		}
		for n := range p.logs[t.GetTopic()] {
			chosen[place{t.GetTopic(), n}] = true
		}
	}
	for at := range p.committed {
		// What is left of a topic that is gone cannot be reset, and was not named.
		if _, there := p.logs[at.topic][at.partition]; len(named) == 0 && there {
			chosen[at] = true
		}
	}
}

// change is what happens to one partition.
func (p *planning) change(req *adminpb.PlanOffsetsRequest, at place) (*adminpb.OffsetChange, error) {
	c := &adminpb.OffsetChange{Topic: at.topic, Partition: at.partition}
	current, has := p.committed[at]
	if has {
		c.Current = &current
	}
	log, there := p.logs[at.topic][at.partition]
	if !there && !deletes(req) && p.unasked != nil {
		return nil, status.Errorf(codes.Unavailable, "%s-%d: %v", at.topic, at.partition, p.unasked)
	}
	if !there && !deletes(req) {
		return nil, status.Errorf(codes.NotFound, "the broker has no partition %s-%d", at.topic, at.partition)
	}
	switch target := req.GetTarget().(type) {
	case *adminpb.PlanOffsetsRequest_Earliest:
		c.New = &log.start
	case *adminpb.PlanOffsetsRequest_Latest:
		c.New = &log.end
	case *adminpb.PlanOffsetsRequest_Offset:
		c.New, c.Note = log.nearest(target.Offset)
	case *adminpb.PlanOffsetsRequest_Timestamp:
		found, ok := p.at.Lookup(at.topic, at.partition)
		if !ok || found.Err != nil {
			return nil, status.Errorf(codes.Unavailable, "%s-%d: %v", at.topic, at.partition, cmp.Or(found.Err, p.unasked))
		}
		c.New, c.Note = log.nearest(found.Offset)
	case *adminpb.PlanOffsetsRequest_ShiftBy:
		if !has {
			return nil, status.Errorf(codes.FailedPrecondition, "group %q has no offset of %s-%d to shift", p.group, at.topic, at.partition)
		}
		c.New, c.Note = log.nearest(shifted(current, target.ShiftBy))
	case *adminpb.PlanOffsetsRequest_Set:
		// Taken as it is; the note says where the log does not have it.
		s := p.set[at]
		_, c.Note = log.nearest(s.GetOffset())
		c.New, c.LeaderEpoch, c.Metadata = &s.Offset, s.LeaderEpoch, s.GetMetadata()
	}
	return c, nil
}

// nearest takes an offset to where the log is, as Kafka's tool does.
func (s span) nearest(want int64) (*int64, string) {
	switch {
	case want < s.start:
		return &s.start, fmt.Sprintf("%d is before the log", want)
	case want > s.end:
		return &s.end, fmt.Sprintf("%d is after the log", want)
	}
	return &want, ""
}

// shifted does not overflow.
func shifted(from, by int64) int64 {
	if to := from + by; by < 0 || to >= from {
		return to
	}
	return math.MaxInt64
}
