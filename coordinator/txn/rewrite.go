package txn

import (
	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/storage"
)

// Rewrite puts records in the place of stored ones of a transactional id that say the
// same, or as much of it as an older release reads. It is answered by a Rewritten.
//
// With Orphans the records are of no id. One without records is answered when all is durable
// that was decided before it.
type Rewrite struct {
	TransactionalID string
	Orphans         bool
	Records         []Rewriting
}

// Rewriting is one record, in bytes, for that at an offset.
type Rewriting struct {
	At     storage.Offset
	Record state.Record
}

// Rewritten is how many records were written; the others have been superseded meanwhile.
type Rewritten struct{ Records int }

// Entity is part of Request.
func (r Rewrite) Entity() (string, bool) { return r.TransactionalID, !r.Orphans }

func (m *Machine) rewrite(e *entry, r Rewrite, out *output) Rewritten {
	var done Rewritten
	for i := range r.Records {
		if at, has := m.hard.At(e.id); has && at == r.Records[i].At {
			out.Record(r.Records[i].Record)
			done.Records++
		}
	}
	return done
}

// rewriteOrphans: nobody else writes them.
func rewriteOrphans(r Rewrite, out *output) Rewritten {
	for i := range r.Records {
		out.Record(r.Records[i].Record)
	}
	return Rewritten{len(r.Records)}
}
