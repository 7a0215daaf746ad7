package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// noMetadata is what partitions without metadata have; answers point to it.
var noMetadata = ""

// fetch answers with committed offsets. A group that does not exist has none,
// which is no error. Member id and epoch (v9, KIP-848) count for no classic group.
func (m *Machine) fetch(e *entry, r Fetch) *kmsg.OffsetFetchResponseGroup {
	resp := &kmsg.OffsetFetchResponseGroup{Group: r.Group}
	g := m.hard.Group(e.id)
	if r.Topics == nil {
		if g != nil {
			fetchAll(g, r.RequireStable, resp)
		}
		return resp
	}
	n := 0
	for i := range r.Topics {
		n += len(r.Topics[i].Partitions)
	}
	all := make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, n)
	metadata := make([]string, 0, n)
	resp.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(r.Topics))
	for i := range r.Topics {
		t := &r.Topics[i]
		from := len(all)
		for _, p := range t.Partitions {
			if r.RequireStable && g != nil && g.HasPending(t.Topic, p) {
				all = append(all, unstable(p))
				continue
			}
			o, has := state.Offset{Offset: -1, LeaderEpoch: -1}, false
			if g != nil {
				if c, ok := g.Offset(t.Topic, p); ok {
					o, has = c, c.Metadata != ""
				}
			}
			at := &noMetadata
			if has {
				metadata = append(metadata, o.Metadata)
				at = &metadata[len(metadata)-1]
			}
			all = append(all, kmsg.OffsetFetchResponseGroupTopicPartition{Partition: p, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: at})
		}
		resp.Topics[i] = kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: all[from:len(all):len(all)]}
	}
	return resp
}

// unstable is a partition whose offset a transaction may be about to change.
func unstable(partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	return kmsg.OffsetFetchResponseGroupTopicPartition{
		Partition: partition, Offset: -1, LeaderEpoch: -1, Metadata: &noMetadata, ErrorCode: unstableOffsetCommit,
	}
}

// fetchAll answers with all offsets of a group, by topic and partition. Where there
// are none but pending ones, they are not told of.
func fetchAll(g *state.Group, stable bool, resp *kmsg.OffsetFetchResponseGroup) {
	resp.Topics = []kmsg.OffsetFetchResponseGroupTopic{}
	all := make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, g.Offsets()) // of all topics: one piece of memory
	g.EachOffset(func(topic string, partition int32, o state.Offset) {
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != topic {
			resp.Topics = append(resp.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: topic})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		if stable && g.HasPending(topic, partition) {
			all = append(all, unstable(partition))
		} else {
			metadata := &noMetadata
			if o.Metadata != "" {
				own := o.Metadata // else each o would be a piece of memory of its own
				metadata = &own
			}
			all = append(all, kmsg.OffsetFetchResponseGroupTopicPartition{
				Partition: partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: metadata,
			})
		}
		t.Partitions = all[len(all)-len(t.Partitions)-1 : len(all) : len(all)]
	})
}
