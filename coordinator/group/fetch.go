package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// noMetadata is what partitions without metadata have; answers point to it.
var noMetadata = ""

// FetchMemory holds the answer to a Fetch. Who asked owns it, and may use it for
// the next when that answer is no longer needed.
type FetchMemory struct {
	group    kmsg.OffsetFetchResponseGroup
	topics   []kmsg.OffsetFetchResponseGroupTopic
	parts    []kmsg.OffsetFetchResponseGroupTopicPartition // of all topics
	metadata []string                                      // of all partitions
}

// begin makes room for the answer.
func (m *FetchMemory) begin(group string, topics, parts int) *kmsg.OffsetFetchResponseGroup {
	m.group = kmsg.OffsetFetchResponseGroup{Group: group}
	m.topics, m.parts, m.metadata = slices.Grow(m.topics[:0], topics), slices.Grow(m.parts[:0], parts), m.metadata[:0]
	return &m.group
}

// Reset forgets the answer, and lets memory for more than this many partitions go.
func (m *FetchMemory) Reset(parts int) {
	if cap(m.parts) > parts || cap(m.topics) > parts {
		*m = FetchMemory{}
		return
	}
	clear(m.topics)
	clear(m.parts)
	clear(m.metadata)
	m.group = kmsg.OffsetFetchResponseGroup{}
}

// add appends a partition to the topic that was begun last, at most as many as there is room for.
func (m *FetchMemory) add(p kmsg.OffsetFetchResponseGroupTopicPartition, metadata string) {
	if p.Metadata = &noMetadata; metadata != "" {
		if len(m.metadata) == 0 { // it must not grow later, since answers point to it
			m.metadata = slices.Grow(m.metadata, cap(m.parts))
		}
		m.metadata = append(m.metadata, metadata)
		p.Metadata = &m.metadata[len(m.metadata)-1]
	}
	m.parts = append(m.parts, p)
	t := &m.topics[len(m.topics)-1]
	t.Partitions = m.parts[len(m.parts)-len(t.Partitions)-1 : len(m.parts) : len(m.parts)]
}

// fetch answers with committed offsets. A group that does not exist has none,
// which is no error. Member id and epoch (v9, KIP-848) count for no classic group.
func (m *Machine) fetch(e *entry, r Fetch) *kmsg.OffsetFetchResponseGroup {
	g, mem := m.hard.Group(e.id), r.Memory
	if mem == nil {
		mem = &FetchMemory{}
	}
	if r.Topics == nil {
		return mem.all(g, r)
	}
	n := 0
	for i := range r.Topics {
		n += len(r.Topics[i].Partitions)
	}
	resp := mem.begin(r.Group, len(r.Topics), n)
	for i := range r.Topics {
		t := &r.Topics[i]
		mem.topics = append(mem.topics, kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID})
		for _, p := range t.Partitions {
			o := state.Offset{Offset: -1, LeaderEpoch: -1}
			if g != nil {
				if c, has := g.Offset(t.Topic, p); has && !ofAnother(c.TopicID, t.TopicID) {
					o = c
				}
			}
			mem.offset(g, r, t.Topic, p, &o)
		}
	}
	resp.Topics = mem.topics
	return resp
}

// ofAnother says whether an offset is of an earlier topic of the name than the one that is
// asked for by id (v10). Without one of the ids nobody can tell (4.4.0: isMismatchedTopicId).
func ofAnother(stored, asked [16]byte) bool {
	var none [16]byte
	return stored != asked && stored != none && asked != none
}

// all answers with all offsets of a group, by topic and partition. Where there
// are none but pending ones, they are not told of.
func (m *FetchMemory) all(g *state.Group, r Fetch) *kmsg.OffsetFetchResponseGroup {
	if g == nil {
		return m.begin(r.Group, 0, 0)
	}
	resp := m.begin(r.Group, 1, g.Offsets())
	g.EachOffset(func(topic string, partition int32, o state.Offset) {
		if n := len(m.topics); n == 0 || m.topics[n-1].Topic != topic {
			m.topics = append(m.topics, kmsg.OffsetFetchResponseGroupTopic{Topic: topic})
		}
		m.offset(g, r, topic, partition, &o)
	})
	resp.Topics = m.topics
	return resp
}

// offset adds a partition's offset, unless a transaction may be about to change it.
func (m *FetchMemory) offset(g *state.Group, r Fetch, topic string, partition int32, o *state.Offset) {
	if r.RequireStable && g != nil && g.HasPending(topic, partition) {
		m.add(kmsg.OffsetFetchResponseGroupTopicPartition{
			Partition: partition, Offset: -1, LeaderEpoch: -1, ErrorCode: unstableOffsetCommit,
		}, "")
		return
	}
	m.add(kmsg.OffsetFetchResponseGroupTopicPartition{Partition: partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch}, o.Metadata)
}
