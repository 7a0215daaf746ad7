package state

import "github.com/kcoord/kcoord/storage"

// At is the offset of the record that counts of the key of r; -1: none does.
func (g *Group) At(r *Record) storage.Offset { return g.at(r.slot()) }

// AwaitsTransaction says whether something is pending that r, written again, would be later
// than, so that it would never count.
func (g *Group) AwaitsTransaction(r *Record) bool {
	if r.Kind == KindOffset {
		return g.HasPending(r.Topic, r.Partition)
	}
	return g.hasPending(r.slot())
}

// Outdated says whether r, which is of a partition that has offsets under keys of both
// versions, is not the one that counts. Written again, it would be.
func (g *Group) Outdated(r *Record) bool {
	at := r.slot()
	other := at
	other.legacy = !at.legacy
	return at.kind == KindOffset && g.at(other) > g.at(at)
}
