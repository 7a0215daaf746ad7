package memlog

import (
	"cmp"
	"slices"

	"github.com/kcoord/kcoord/storage"
)

// shown is what a shard's durable records come to, by storage.Txn's rules.
type shown struct {
	latest  map[string]latest // by key
	pending map[pendingKey]storage.Located
}

// latest is the latest record of a key, as a plain one.
type latest struct {
	storage.Located
	// commit is the offset of the control record that the record counts by; -1: it is a plain one.
	commit storage.Offset
}

type pendingKey struct {
	producer int64
	key      string
}

func (s *shard) shown() shown {
	v := shown{map[string]latest{}, map[pendingKey]storage.Located{}}
	for _, r := range s.durableRecs() {
		switch {
		case r.Txn.Kind.Control():
			v.resolve(r)
		case r.Value == nil:
			v.put(r, -1)
			for k := range v.pending {
				if k.key == string(r.Key) {
					delete(v.pending, k)
				}
			}
		case r.Txn.Kind == storage.Pending:
			v.pending[pendingKey{r.Txn.Producer, string(r.Key)}] = r
		default:
			v.put(r, -1)
		}
	}
	return v
}

func (v *shown) put(r storage.Located, commit storage.Offset) {
	r.Txn = storage.Txn{}
	v.latest[string(r.Key)] = latest{r, commit}
}

// resolve ends the transaction of a control record's producer.
func (v *shown) resolve(control storage.Located) {
	for k, r := range v.pending {
		if k.producer != control.Txn.Producer {
			continue
		}
		delete(v.pending, k)
		if l, has := v.latest[k.key]; control.Txn.Kind == storage.Commit && (!has || l.Offset < r.Offset) {
			v.put(r, control.Offset)
		}
	}
}

// live are the offsets that compaction keeps, tombstones' and all.
func (v *shown) live() map[storage.Offset]bool {
	keep := map[storage.Offset]bool{}
	for _, l := range v.latest {
		keep[l.Offset] = true
		keep[l.commit] = true
	}
	for _, r := range v.pending {
		keep[r.Offset] = true
	}
	return keep
}

// pendingOf are the pending records that a test of their keys accepts, by offset.
func (v *shown) pendingOf(accept func(key []byte) bool) []storage.Located {
	var recs []storage.Located
	for _, r := range v.pending {
		if accept(r.Key) {
			recs = append(recs, r)
		}
	}
	slices.SortFunc(recs, func(a, b storage.Located) int { return cmp.Compare(a.Offset, b.Offset) })
	return recs
}
