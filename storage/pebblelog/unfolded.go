package pebblelog

import (
	"bytes"
	"encoding/binary"

	"github.com/kcoord/kcoord/storage"
)

// unfolded is what is known of a log's tail: its entities, so that Load knows whether the key table has all of
// one, and its batches.
//
// Most of a tail is superseded before it is folded, since groups commit the same partitions over and over. That is known
// when it happens, and exactly: a step that writes the keys of its entity's step before, all of them and no others,
// supersedes that. A batch whose every step is superseded so by what is durable need not be read by the fold.
//
// Guarded by shard.mu.
type unfolded struct {
	index   func(key []byte) (entity []byte, class storage.Class)
	touched map[string]*touched
	// control is the offset of the last control record, which may concern any entity; -1: there is none.
	control    storage.Offset
	lastEntity []byte // the entity of the record before
	last       *touched
	batches    []*tailBatch // in the log's order, the set's too
}

// touched is an entity with records in the tail.
type touched struct {
	last storage.Offset // of its records
	// Of its last step, if another can supersede it as a whole: the batch, else nil, and
	// the keys, each behind its length.
	in   *tailBatch
	keys []byte
}

// tailBatch is a batch of the tail, of which there may be as many as commits: so it is small.
type tailBatch struct {
	base storage.Offset
	// superseded is where the step ends that superseded the last of those that wrote to it.
	superseded storage.Offset
	steps      int32 // that are not superseded
	// Of what the committer has written, else 0.
	records int32
	size    int32 // not compressed
	stored  int32 // in the log
}

// weight is what the batch counts in shard.tail. What the fold has to read weighs as much as it has bytes, what it
// only takes out of the log as much as it takes there.
func (b *tailBatch) weight() int64 {
	if b.steps == 0 {
		return int64(min(b.size, b.stored))
	}
	return int64(b.size)
}

func (u *unfolded) init(index func([]byte) ([]byte, storage.Class)) {
	*u = unfolded{index: index, touched: map[string]*touched{}, control: -1}
}

// begin notes that a batch begins.
func (u *unfolded) begin(base storage.Offset) {
	u.batches = append(u.batches, &tailBatch{base: base})
}

// step is a step that is being appended.
type step struct {
	of    *touched // the first record's entity
	again bool     // it writes what that wrote last, anew
	whole bool     // so far it is of one entity, without tombstones and not part of a transaction
	in    *tailBatch
}

func (u *unfolded) step(recs []storage.Record) step {
	if recs[0].Txn.Kind.Control() {
		return step{}
	}
	of := u.entity(recs[0].Key)
	return step{of: of, whole: of != nil, again: of != nil && of.in != nil && of.wrote(recs)}
}

// wrote says whether these are the keys of the entity's last step, with values.
func (t *touched) wrote(recs []storage.Record) bool {
	keys := t.keys
	for i := range recs {
		r := &recs[i]
		if r.Value == nil || r.Txn != (storage.Txn{}) || len(keys) < 4 {
			return false
		}
		n := binary.LittleEndian.Uint32(keys)
		if uint64(len(keys)-4) < uint64(n) || !bytes.Equal(keys[4:4+n], r.Key) {
			return false
		}
		keys = keys[4+n:]
	}
	return len(keys) == 0
}

// add takes in the step's record at an offset, of the batch that began last.
func (u *unfolded) add(s *step, r *storage.Record, at storage.Offset) {
	if b := u.batches[len(u.batches)-1]; s.in != b { // it has begun with another where a transaction ends in it
		b.steps++
		s.in = b
	}
	switch {
	case s.again:
		return // of is touched at the end
	case r.Txn.Kind.Control():
		u.control, s.whole = at, false
		return
	}
	t := u.entity(r.Key)
	if t != nil {
		t.last, t.in = at, nil
	}
	s.whole = s.whole && t == s.of && r.Value != nil && r.Txn == storage.Txn{}
}

// end ends the step, whose records end at an offset, and says by how much the tail has become lighter.
func (u *unfolded) end(s *step, recs []storage.Record, at storage.Offset) (by int64) {
	switch {
	case s.again:
		before := s.of.in
		by = before.weight()
		if before.steps--; before.steps == 0 {
			before.superseded = at
		}
		by -= before.weight()
	case s.whole:
		keys := s.of.keys[:0]
		for i := range recs {
			keys = binary.LittleEndian.AppendUint32(keys, uint32(len(recs[i].Key)))
			keys = append(keys, recs[i].Key...)
		}
		s.of.keys = keys
	default:
		return 0
	}
	s.of.last, s.of.in = at-1, s.in
	return by
}

// entity is what a key belongs to, nil: to none. Records of one step are mostly of one entity, which is then looked up once.
func (u *unfolded) entity(key []byte) *touched {
	entity, class := u.index(key)
	if class == storage.Orphan {
		return nil
	}
	if u.last != nil && bytes.Equal(entity, u.lastEntity) {
		return u.last
	}
	t := u.touched[string(entity)]
	if t == nil {
		t = &touched{last: -1}
		u.touched[string(entity)] = t
	}
	u.lastEntity, u.last = append(u.lastEntity[:0], entity...), t
	return t
}

// superseded appends the batches below an end, which is durable, of which nothing is left, in order.
func (u *unfolded) superseded(to storage.Offset, all []*tailBatch) []*tailBatch {
	for _, b := range u.batches {
		if b.base >= to {
			break
		}
		if b.steps == 0 && b.superseded <= to {
			all = append(all, b)
		}
	}
	return all
}

// forget drops what the fold up to an offset, which is a batch's end, has completed, and says what that weighed.
func (u *unfolded) forget(folded storage.Offset) (weight int64) {
	for entity, t := range u.touched {
		if t.last < folded {
			delete(u.touched, entity)
		}
	}
	u.last = nil
	if u.control < folded {
		u.control = -1
	}
	for len(u.batches) > 0 && u.batches[0].base < folded {
		weight += u.batches[0].weight()
		u.batches[0] = nil
		u.batches = u.batches[1:]
	}
	return weight
}
