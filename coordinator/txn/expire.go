package txn

import "github.com/kcoord/kcoord/coordinator/txn/state"

// expire ends an id of which nothing was heard for long. Its producer, should it
// come back, is told that its id is not known (INVALID_PRODUCER_ID_MAPPING).
func (m *Machine) expire(e *entry, out *output) {
	t := m.hard.Txn(e.id)
	if t == nil || !state.Dead.Follows(t.Status) {
		m.expiry.timers.Cancel(&e.expires)
		return
	}
	m.counts.Expired++
	out.Record(state.Record{Kind: state.KindTxn, ID: e.id, Tombstone: true})
}
