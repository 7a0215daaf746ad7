package group

import "github.com/kcoord/kcoord/coordinator/group/state"

// forgetTopics deletes the offsets of topics that are no more, pending ones too, of
// a group of whatever kind and in whatever state.
func (m *Machine) forgetTopics(e *entry, r ForgetTopics, out *output) ForgottenTopics {
	var done ForgottenTopics
	g := m.hard.Group(e.id)
	if g == nil {
		return done
	}
	g.EachPartition(func(topic string, partition int32) {
		if now, deleted := r.Topics[topic]; deleted && !of(g, topic, partition, now) {
			done.Offsets += m.deleteOffset(g, topic, partition, out)
		}
	})
	m.counts.OffsetsDeleted += int64(done.Offsets)
	if done.Offsets > 0 {
		m.checkSoon(e)
	}
	return done
}

// of says whether what a group has for a partition is known to be of the topic with that id.
func of(g *state.Group, topic string, partition int32, id [16]byte) bool {
	if id == ([16]byte{}) {
		return false
	}
	o, _ := g.Offset(topic, partition)
	is := o.TopicID == id
	g.EachPending(func(r state.Record) {
		is = is || r.Topic == topic && r.Partition == partition && r.Offset.TopicID == id
	})
	return is
}
