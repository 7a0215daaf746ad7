package group

import (
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// Marker ends a producer's transaction in all groups of the shard: its pending
// offsets count or are gone. It is about the shard. It is answered by a Marked, and
// may be sent again.
type Marker struct {
	Producer         int64
	Epoch            int16
	Commit           bool
	CoordinatorEpoch int32
	// TransactionVersion is that of the transaction. From 2 on a marker has the epoch after it.
	TransactionVersion int16
}

// Marked says what came of a marker: 0 or INVALID_PRODUCER_EPOCH, which stands for
// a transaction that is long over.
type Marked struct{ ErrorCode int16 }

// Entity is part of Request.
func (r Marker) Entity() (string, bool) { return "", false }

// marker writes the control record, and does so where nothing is pending, too: a
// group whose records could not be read when the shard was opened is not in memory, and
// yet its offsets are pending in the log. A marker of an earlier epoch than what
// is pending must not end that, nor one of transaction version 2 that has the very epoch:
// it is of the transaction before (KIP-1228).
func (m *Machine) marker(r Marker, out *output) Marked {
	if pending := m.hard.Epoch(r.Producer); r.Epoch < pending || r.TransactionVersion >= 2 && r.Epoch == pending {
		return Marked{invalidProducerEpoch}
	}
	kind := storage.Abort
	if r.Commit {
		kind = storage.Commit
	}
	out.Record(state.Record{
		Kind: state.KindMarker, Txn: storage.Txn{Producer: r.Producer, Epoch: r.Epoch, Kind: kind}, CoordinatorEpoch: r.CoordinatorEpoch,
	})
	return Marked{none}
}

// applyMarker makes a control record part of the state of the groups it concerns.
// None of them was kept from expiring, or from leaving the memory, by anything else.
func (m *Machine) applyMarker(offset storage.Offset, rec *state.Record) {
	ids := m.hard.Open(rec.Txn.Producer)
	m.hard.Apply(offset, rec)
	for _, id := range ids {
		e := m.entry(id)
		e.last = max(e.last, offset)
		m.measure(e, m.hard.Group(id), rec.Kind)
		m.checkSoon(e)
	}
}
