package group

import (
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// Rewrite puts records in the place of stored ones of a group that say the same, or as
// much of it as an older release reads. It changes what is stored and not what the group
// does: members stay, whatever their state. It is answered by a Rewritten.
//
// With Orphans the records are of no group. One without records is answered when all is
// durable that was decided before it.
type Rewrite struct {
	Group   string
	Orphans bool
	Records []Rewriting
}

// Rewriting is one record, in bytes, for that at an offset.
type Rewriting struct {
	At     storage.Offset
	Record state.Record
}

// Rewritten is how many records were written. The others have been superseded meanwhile, or
// wait for a transaction that has offsets of the same partition pending: written now, they
// would be later than those, and count in their place when the transaction commits.
type Rewritten struct{ Records int }

// Entity is part of Request.
func (r Rewrite) Entity() (string, bool) { return r.Group, !r.Orphans }

func (m *Machine) rewrite(e *entry, r Rewrite, out *output) Rewritten {
	g := m.hard.Group(e.id)
	if g == nil {
		return Rewritten{}
	}
	n := len(out.Records)
	for i := range r.Records {
		rec := r.Records[i].Record
		if g.At(&rec) != r.Records[i].At || g.AwaitsTransaction(&rec) {
			continue
		}
		if g.Outdated(&rec) {
			rec.Tombstone, rec.Value = true, nil
		}
		out.Record(rec)
	}
	n = len(out.Records) - n
	if n > 0 {
		m.checkSoon(e)
	}
	return Rewritten{n}
}

// rewriteOrphans: nobody else writes them.
func rewriteOrphans(r Rewrite, out *output) Rewritten {
	for i := range r.Records {
		out.Record(r.Records[i].Record)
	}
	return Rewritten{len(r.Records)}
}
