package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
)

type offsets struct {
	adminpb.UnimplementedOffsetsServer
	ask    Coordinator
	broker *Broker
}

// ListOffsets tells of a group's committed offsets.
func (o *offsets) ListOffsets(ctx context.Context, req *adminpb.ListOffsetsRequest) (*adminpb.ListOffsetsResponse, error) {
	d, err := askOne[group.Observed](ctx, o.ask, group.Observe{Group: req.GetGroup()})
	if err != nil {
		return nil, err
	}
	committed, err := committedOffsets(ctx, o.ask, req.GetGroup(), req.GetPartitions())
	if err != nil {
		return nil, err
	}
	if len(committed) == 0 && d.ErrorCode != 0 { // one of another protocol has offsets and no description
		return nil, coded(d.ErrorCode, req.GetGroup())
	}
	return &adminpb.ListOffsetsResponse{Offsets: committed, EndsUnknown: locate(ctx, o.broker, committed)}, nil
}

// committedOffsets are a group's, without what only the broker knows.
func committedOffsets(ctx context.Context, c Coordinator, id string, of []*adminpb.TopicPartitions) ([]*adminpb.PartitionOffset, error) {
	fetched, err := fetch(ctx, c, id)
	if err != nil {
		return nil, err
	}
	var offsets []*adminpb.PartitionOffset
	for _, t := range fetched.Topics {
		for _, p := range t.Partitions {
			if selected(of, t.Topic, p.Partition) {
				offsets = append(offsets, &adminpb.PartitionOffset{
					Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: *p.Metadata,
				})
			}
		}
	}
	return offsets, nil
}

// uncommitted are the partitions that members are assigned and of which committed has no offset.
func uncommitted(members []*adminpb.Member, committed []*adminpb.PartitionOffset) []*adminpb.PartitionOffset {
	known := map[place]bool{}
	for _, o := range committed {
		known[place{o.Topic, o.Partition}] = true
	}
	var of []*adminpb.PartitionOffset
	for _, m := range members {
		for _, t := range m.Assignment {
			for _, p := range t.Partitions {
				if at := (place{t.Topic, p}); !known[at] {
					known[at] = true // two members may name it
					of = append(of, &adminpb.PartitionOffset{Topic: t.Topic, Partition: p, Offset: -1, LeaderEpoch: -1})
				}
			}
		}
	}
	slices.SortFunc(of, func(a, b *adminpb.PartitionOffset) int {
		return place{a.Topic, a.Partition}.compare(place{b.Topic, b.Partition})
	})
	return of
}

// locate adds where the logs begin and end, and the lag where an offset is committed.
// It tells why where that is not known.
func locate(ctx context.Context, b *Broker, offsets []*adminpb.PartitionOffset) (unknown string) {
	named := map[string]bool{}
	for _, o := range offsets {
		named[o.Topic] = true
	}
	logs, err := b.spans(ctx, slices.Sorted(maps.Keys(named)))
	if err != nil {
		unknown = err.Error()
	}
	for _, o := range offsets {
		log, ok := logs[o.Topic][o.Partition]
		if !ok {
			continue
		}
		o.StartOffset, o.EndOffset = &log.start, &log.end
		if o.Offset >= 0 {
			lag := log.end - o.Offset
			o.Lag = &lag
		}
	}
	return unknown
}

// fetch asks for all of a group's offsets, which come by topic and partition.
func fetch(ctx context.Context, c Coordinator, id string) (*kmsg.OffsetFetchResponseGroup, error) {
	req := kmsg.NewOffsetFetchRequestGroup()
	req.Group = id
	resp, err := askOne[*kmsg.OffsetFetchResponseGroup](ctx, c, group.Fetch{OffsetFetchRequestGroup: &req})
	if err != nil {
		return nil, err
	}
	return resp, coded(resp.ErrorCode, id)
}

// selected says whether a partition is one of those named; none named: all are.
func selected(of []*adminpb.TopicPartitions, topic string, partition int32) bool {
	for _, t := range of {
		if t.GetTopic() == topic && (len(t.GetPartitions()) == 0 || slices.Contains(t.GetPartitions(), partition)) {
			return true
		}
	}
	return len(of) == 0
}

// ApplyOffsets does what a plan says. Plans are kept: a topic that is gone since, or somebody's slip of
// the pen, must not leave an offset behind for a topic that is made later.
func (o *offsets) ApplyOffsets(ctx context.Context, plan *adminpb.OffsetsPlan) (*adminpb.ApplyOffsetsResponse, error) {
	return &adminpb.ApplyOffsetsResponse{}, o.set(ctx, plan, false)
}

// exist refuses to set offsets of partitions that the broker does not have.
func (o *offsets) exist(ctx context.Context, changes []group.OffsetChange) error {
	names := map[string]bool{}
	for _, c := range changes {
		if c.New >= 0 {
			names[c.Topic] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	there, err := o.broker.topics(ctx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	for _, c := range changes {
		if c.New < 0 {
			continue
		}
		if err := missing(there, place{c.Topic, c.Partition}); err != nil {
			return err
		}
	}
	return nil
}

// offsetChanges are a plan's, for the group's shard.
func offsetChanges(plan *adminpb.OffsetsPlan) (changes []group.OffsetChange, err error) {
	twice := map[place]bool{}
	for _, c := range plan.GetChanges() {
		at := place{c.GetTopic(), c.GetPartition()}
		switch {
		case at.topic == "" || at.partition < 0 || c.New != nil && c.GetNew() < 0 || c.Current != nil && c.GetCurrent() < 0:
			return nil, status.Errorf(codes.InvalidArgument, "%s-%d: a change needs a topic, a partition, and offsets from 0 on", at.topic, at.partition)
		case twice[at]:
			return nil, status.Errorf(codes.InvalidArgument, "%s-%d is changed twice", at.topic, at.partition)
		}
		twice[at] = true
		changes = append(changes, group.OffsetChange{
			Topic: at.topic, Partition: at.partition, Expected: orMinusOne(c.Current), New: orMinusOne(c.New),
			LeaderEpoch: orMinusOne(c.LeaderEpoch), Metadata: c.GetMetadata(),
		})
	}
	return changes, nil
}

// set hands a plan's changes to the group's shard, which compares and sets in one step, or only tries.
func (o *offsets) set(ctx context.Context, plan *adminpb.OffsetsPlan, try bool) error {
	changes, err := offsetChanges(plan)
	if err != nil {
		return err
	}
	if err := o.exist(ctx, changes); err != nil {
		return err
	}
	set, err := askOne[group.OffsetsSet](ctx, o.ask, group.SetOffsets{Group: plan.GetGroup(), Changes: changes, Try: try})
	if err != nil {
		return err
	}
	if err := refused(plan.GetGroup(), set); err != nil {
		return err
	}
	if len(set.Differing) > 0 {
		return differing(differences(plan, set.Differing))
	}
	return nil
}

type place struct {
	topic     string
	partition int32
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.topic, o.topic), cmp.Compare(p.partition, o.partition))
}

func refused(id string, set group.OffsetsSet) error {
	switch set.Code {
	case kerr.NonEmptyGroup.Code:
		return inUse(id, set.State, set.Members, set.Read)
	case kerr.GroupIDNotFound.Code:
		return status.Errorf(codes.FailedPrecondition, "group %q is of a protocol that kcoord does not serve yet: whether it has members is not known", id)
	}
	return coded(set.Code, id)
}

func differences(plan *adminpb.OffsetsPlan, found []group.OffsetChange) *adminpb.OffsetsDiffer {
	planned := map[place]*int64{}
	for _, c := range plan.GetChanges() {
		planned[place{c.GetTopic(), c.GetPartition()}] = c.Current
	}
	detail := &adminpb.OffsetsDiffer{Group: plan.GetGroup()}
	for _, f := range found {
		d := &adminpb.OffsetDifference{Topic: f.Topic, Partition: f.Partition, Expected: planned[place{f.Topic, f.Partition}]}
		if f.Expected >= 0 {
			d.Current = &f.Expected
		}
		detail.Differences = append(detail.Differences, d)
	}
	return detail
}

// orMinusOne is what Kafka's messages have for nothing.
func orMinusOne[T int32 | int64](n *T) T {
	if n == nil {
		return -1
	}
	return *n
}
