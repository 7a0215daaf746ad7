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
	// What is known to be of the topic that has the name now stays.
	is := func(topic string, o state.Offset) bool {
		return o.TopicID != [16]byte{} && o.TopicID == r.Topics[topic]
	}
	pending := map[state.TopicPartition]bool{}
	g.EachPending(func(p state.Record) {
		if is(p.Topic, p.Offset) {
			pending[state.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = true
		}
	})
	g.EachPartition(func(topic string, partition int32) {
		o, _ := g.Offset(topic, partition)
		if _, deleted := r.Topics[topic]; deleted && !is(topic, o) && !pending[state.TopicPartition{Topic: topic, Partition: partition}] {
			done.Offsets += m.deleteOffset(g, topic, partition, out)
		}
	})
	m.counts.OffsetsDeleted += int64(done.Offsets)
	if done.Offsets > 0 {
		m.checkSoon(e)
	}
	return done
}
