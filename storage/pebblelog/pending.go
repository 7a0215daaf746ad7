package pebblelog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
)

// pendings are the pending records that the key table holds, but for the values of
// those that are stored. There are few: whoever has one open is waited for.
//
// A fold goes through the log's order, so it changes them as it goes. When it
// fails they are dropped and read again.
type pendings struct {
	of       map[int64]map[string]*pendingRow // producer → record key
	keys     map[string]int                   // record key → how many have it pending
	entities map[string]int                   // entity → its pending records
}

type pendingRow struct {
	row    // its value only while it is fresh
	entity string
	class  storage.Class
	stored bool // there is a row, maybe of an earlier record
	fresh  bool // the fold under way has met it: the row is still to be written
}

func newPendings() *pendings {
	return &pendings{of: map[int64]map[string]*pendingRow{}, keys: map[string]int{}, entities: map[string]int{}}
}

// add returns the place of a producer's pending record, a new one if it has none.
func (p *pendings) add(producer int64, key, entity []byte, class storage.Class) *pendingRow {
	if r := p.of[producer][string(key)]; r != nil {
		return r
	}
	name := string(key)
	r := &pendingRow{entity: string(entity), class: class}
	if p.of[producer] == nil {
		p.of[producer] = map[string]*pendingRow{}
	}
	p.of[producer][name] = r
	p.keys[name]++
	if class != storage.Orphan {
		p.entities[r.entity]++
	}
	return r
}

func (p *pendings) remove(producer int64, key string, r *pendingRow) {
	if delete(p.of[producer], key); len(p.of[producer]) == 0 {
		delete(p.of, producer)
	}
	decrement(p.keys, key)
	if r.class != storage.Orphan {
		decrement(p.entities, r.entity)
	}
}

func decrement(m map[string]int, key string) {
	if m[key]--; m[key] == 0 {
		delete(m, key)
	}
}

// loadPendings reads which pending records the key table holds.
//
// REQUIRES: folding held.
func (s *shard) loadPendings() error {
	prefix := regionKey(nil, s.id, regionPending)
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(bytes.Clone(prefix))})
	if err != nil {
		return err
	}
	p := newPendings()
	for ok := iter.First(); ok && err == nil; ok = iter.Next() {
		err = p.load(s, iter)
	}
	if err = errors.Join(err, iter.Error(), iter.Close()); err == nil {
		s.pending = p
	}
	return err
}

func (p *pendings) load(s *shard, iter *pebble.Iterator) error {
	k, err := splitPending(iter.Key(), nil)
	if err != nil {
		return err
	}
	r, err := s.rowAt(iter)
	if err != nil {
		return err
	}
	r.value = nil
	place := p.add(k.producer, k.key, k.entity, k.class)
	place.row, place.stored = r, true
	return nil
}

// pend takes in a record of a transaction.
func (f *fold) pend(producer int64, key []byte, r row) {
	entity, class := f.shard.b.index(f.shard.id, key)
	p := f.shard.pending.add(producer, key, entity, class)
	p.row = r
	if !p.fresh {
		p.fresh = true
		f.fresh = append(f.fresh, freshRow{producer, string(key), p})
	}
	f.meet(p)
}

// freshRow is a pending record that a fold has met.
type freshRow struct {
	producer int64
	key      string
	*pendingRow
}

// meet notes that the entity may begin or cease to be.
func (f *fold) meet(p *pendingRow) {
	if p.class == storage.Orphan {
		return
	}
	if _, known := f.entities[p.entity]; !known {
		f.entities[p.entity] = false
	}
}

// unpend takes a pending record away.
func (f *fold) unpend(producer int64, key string, p *pendingRow) {
	f.shard.pending.remove(producer, key, p)
	if p.stored {
		f.gone = append(f.gone, pendingKey(nil, f.shard.id, []byte(p.entity), p.class, []byte(key), producer))
	}
	f.meet(p)
}

// bury ends what is pending of a key, whoever's it is. The key may be in the
// arena, and maps keep the string that they are given last.
//
// The tombstone stays in the log, be it superseded: who reads there of what it
// buries would believe that it is pending. Cleaning takes both.
func (f *fold) bury(key string) {
	if f.shard.pending.keys[key] == 0 {
		return
	}
	f.keep()
	for producer, keys := range f.shard.pending.of {
		if p := keys[key]; p != nil {
			f.unpend(producer, strings.Clone(key), p)
		}
	}
}

// resolve ends a producer's transaction at a control record.
func (f *fold) resolve(control storage.Txn, offset int64) error {
	for key, p := range f.shard.pending.of[control.Producer] {
		if control.Kind == storage.Commit {
			if err := f.count(control.Producer, key, p, offset); err != nil {
				return err
			}
		}
		f.unpend(control.Producer, key, p)
	}
	return nil
}

// count makes a pending record its key's latest, unless a later one is. What the
// chunk has met is later than all that is stored.
func (f *fold) count(producer int64, key string, p *pendingRow, control int64) error {
	r := p.row
	if i, met := f.latest[key]; met {
		if f.rows[i].latest.offset > r.offset {
			return nil
		}
	} else if !p.fresh {
		was, _, err := f.shard.stored(rowKey(nil, f.shard.id, []byte(p.entity), p.class, []byte(key)))
		if err != nil || was.offset > r.offset {
			return err
		}
	}
	if !p.fresh {
		at := pendingKey(nil, f.shard.id, []byte(p.entity), p.class, []byte(key), producer)
		stored, has, err := f.shard.stored(at)
		if err != nil {
			return err
		}
		if !has || stored.offset != r.offset {
			panic(fmt.Sprintf("pebblelog: shard %d: the pending record at offset %d has no row", f.shard.id, r.offset))
		}
		r = stored
	}
	r.kind, r.control = rowCommitted, control
	f.put([]byte(key), r)
	return nil
}

// stored reads a row of the key table, with a value of its own.
func (s *shard) stored(key []byte) (r row, has bool, err error) {
	value, closer, err := s.b.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return row{offset: -1}, false, nil
	}
	if err != nil {
		return row{}, false, err
	}
	r, err = parseRow(value)
	r.value = bytes.Clone(r.value)
	return r, true, errors.Join(err, closer.Close())
}

// writePending writes what has become of pending records.
func (f *fold) writePending(batch *pebble.Batch) error {
	for _, key := range f.gone {
		if err := batch.Delete(key, nil); err != nil {
			return err
		}
	}
	for _, p := range f.fresh {
		if f.shard.pending.of[p.producer][p.key] != p.pendingRow {
			continue // resolved already
		}
		key := pendingKey(nil, f.shard.id, []byte(p.entity), p.class, []byte(p.key), p.producer)
		if err := setRow(batch, key, &p.row); err != nil {
			return err
		}
	}
	return nil
}

// settlePending notes that the rows are written.
func (f *fold) settlePending() {
	for _, p := range f.fresh {
		p.value, p.fresh, p.stored = nil, false, true
	}
}
