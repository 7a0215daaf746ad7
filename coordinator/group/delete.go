package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// delete deletes a group without members, with its offsets and what is pending. A group of another
// protocol is not found: only who knows its records can say that nobody is in it.
func (m *Machine) delete(e *entry, out *output) *kmsg.DeleteGroupsResponseGroup {
	switch {
	case e.live == nil:
		return deleteReply(e.id, groupIDNotFound)
	case e.live.state != stateEmpty:
		return deleteReply(e.id, nonEmptyGroup)
	}
	if g := m.hard.Group(e.id); g != nil {
		g.EachPartition(func(topic string, partition int32) {
			m.counts.OffsetsDeleted += int64(m.deleteOffset(g, topic, partition, out))
		})
	}
	m.end(e, out)
	m.counts.GroupsDeleted++
	return deleteReply(e.id, none)
}

// end ends a group that keeps no offsets any more.
func (m *Machine) end(e *entry, out *output) {
	if g := m.hard.Group(e.id); g != nil && g.Classic() != nil {
		out.Record(state.Record{Kind: state.KindGroup, Group: e.id, Tombstone: true})
	}
	m.bury(e)
	m.sweep.Remove(e)
}

func deleteReply(id string, code int16) *kmsg.DeleteGroupsResponseGroup {
	resp := kmsg.NewDeleteGroupsResponseGroup()
	resp.Group, resp.ErrorCode = id, code
	return &resp
}
