package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// deleteOffsets deletes offsets that an operator names, but for those of topics
// that a member subscribes to (KIP-496).
func (m *Machine) deleteOffsets(e *entry, r DeleteOffsets, out *output) *kmsg.OffsetDeleteResponse {
	hard, g := m.hard.Group(e.id), e.live
	switch {
	case r.Group == "":
		return deleteOffsetsError(invalidGroupID)
	case hard == nil && g == nil:
		return deleteOffsetsError(groupIDNotFound)
	case g != nil && g.state != stateEmpty && g.protocolType != consumerProtocol:
		return deleteOffsetsError(nonEmptyGroup) // nobody knows what its members read
	}
	resp := kmsg.NewPtrOffsetDeleteResponse()
	for _, t := range r.Topics {
		topic := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		kept := g != nil && g.subscribed(t.Topic)
		for _, p := range t.Partitions {
			code := none
			switch {
			case kept:
				code = groupSubscribedToTopic
			case hard != nil:
				m.counts.OffsetsDeleted += int64(m.deleteOffset(hard, t.Topic, p.Partition, out))
			}
			topic.Partitions = append(topic.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	m.checkSoon(e) // it may have been the last one
	return resp
}

// deleteOffset writes what deletes an offset and what is pending of it, under the
// keys of both versions, and returns how many offsets went, 0 or 1.
func (m *Machine) deleteOffset(g *state.Group, topic string, partition int32, out *output) int {
	legacy, current := g.HasLegacy(topic, partition), g.HasCurrent(topic, partition)
	r := state.Record{Kind: state.KindOffset, Group: g.ID(), Topic: topic, Partition: partition, Tombstone: true}
	if current {
		out.Record(r)
	}
	if legacy {
		r.LegacyKey = true
		out.Record(r)
	}
	if current || legacy {
		return 1
	}
	return 0
}

func deleteOffsetsError(code int16) *kmsg.OffsetDeleteResponse {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.ErrorCode = code
	return resp
}
