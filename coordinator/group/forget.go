package group

import "slices"

// forgetTopics deletes the offsets of topics that are no more, pending ones too, of
// a group of whatever kind and in whatever state.
func (m *Machine) forgetTopics(e *entry, r ForgetTopics, out *output) ForgottenTopics {
	var done ForgottenTopics
	g := m.hard.Group(e.id)
	if g == nil {
		return done
	}
	g.EachPartition(func(topic string, partition int32) {
		if slices.Contains(r.Topics, topic) {
			done.Offsets += m.deleteOffset(g, topic, partition, out)
		}
	})
	m.counts.OffsetsDeleted += int64(done.Offsets)
	if done.Offsets > 0 {
		m.checkSoon(e)
	}
	return done
}
