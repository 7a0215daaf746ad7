package pebblelog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// use checks that the log may be used and registers a use of the database, of
// which done tells the end.
func (l *Log) use(what string) (done func(), err error) {
	s := l.shard
	s.mu.Lock()
	err = l.usable(what)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !s.b.enter() {
		return nil, fmt.Errorf("%s shard %d: %w", what, s.id, storage.ErrClosed)
	}
	return s.b.users.Done, nil
}

// Load implements storage.Log. If the entity is in the tail, the tail is folded
// first: that is bounded, and rare since who loads has not had it for a while.
func (l *Log) Load(entity []byte, visit func(storage.Offset, storage.Record) error) error {
	done, err := l.use("load from")
	if err != nil {
		return err
	}
	defer done()
	s := l.shard
	s.mu.Lock()
	_, inTail := s.unfolded.touched[string(entity)]
	resolves := s.unfolded.control >= 0
	s.mu.Unlock()
	iter, err := s.pendingIter(entity)
	if err != nil {
		return err
	}
	defer func() { iter.Close() }()
	pending := iter.First()
	if inTail || pending && resolves {
		if err := s.fold(); err != nil {
			return fmt.Errorf("load: %w", err)
		}
		iter.Close()
		if iter, err = s.pendingIter(entity); err != nil {
			return err
		}
		pending = iter.First()
	}
	var last []storage.Located
	if pending { // all of it is one moment's: the iterator's
		if last, err = s.pendingRows(iter); err != nil {
			return err
		}
	}
	err = s.rows(iter, entity, func(_ storage.Class, key []byte, r row) error {
		if r.value == nil {
			return nil
		}
		return visit(storage.Offset(r.offset), r.record(key))
	})
	if err != nil {
		return err
	}
	for _, r := range last {
		if err := visit(r.Offset, r.Record); err != nil {
			return err
		}
	}
	return nil
}

// pendingIter is an iterator over the pending records of an entity.
func (s *shard) pendingIter(entity []byte) (*pebble.Iterator, error) {
	var low, high [128]byte
	prefix := entityKey(low[:0], s.id, regionPending, entity)
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(append(high[:0], prefix...))})
	if err != nil {
		return nil, fmt.Errorf("read shard %d: %w", s.id, err)
	}
	return iter, nil
}

// pendingRows are the pending records from where the iterator is, by offset.
func (s *shard) pendingRows(iter *pebble.Iterator) ([]storage.Located, error) {
	var recs []storage.Located
	for ok := true; ok; ok = iter.Next() {
		at, err := splitPending(iter.Key(), nil)
		if err != nil {
			return nil, fmt.Errorf("read shard %d: %w", s.id, err)
		}
		if at.class == storage.Orphan {
			continue // under the entity that has no name
		}
		r, err := s.rowAt(iter)
		if err != nil {
			return nil, err
		}
		r.value = append([]byte{}, r.value...)
		rec := r.record(bytes.Clone(at.key))
		rec.Txn = storage.Txn{Producer: at.producer, Epoch: r.epoch, Kind: storage.Pending}
		recs = append(recs, storage.Located{Offset: storage.Offset(r.offset), Record: rec})
	}
	slices.SortFunc(recs, func(a, b storage.Located) int { return cmp.Compare(a.Offset, b.Offset) })
	return recs, iter.Error()
}

// rows visits the rows of an entity that are not pending, headers first,
// tombstones included.
func (s *shard) rows(iter *pebble.Iterator, entity []byte, visit func(storage.Class, []byte, row) error) error {
	prefix := append(entityKey(nil, s.id, regionHeads, entity), tagHeader)
	iter.SetBounds(prefix, after(bytes.Clone(prefix)))
	if err := s.rowsOf(iter, storage.Header, len(prefix), visit); err != nil {
		return err
	}
	prefix = entityKey(nil, s.id, regionBodies, entity)
	iter.SetBounds(prefix, after(bytes.Clone(prefix)))
	return s.rowsOf(iter, storage.Body, len(prefix), visit)
}

func (s *shard) rowsOf(iter *pebble.Iterator, class storage.Class, prefix int, visit func(storage.Class, []byte, row) error) error {
	for ok := iter.First(); ok; ok = iter.Next() {
		r, err := s.rowAt(iter)
		if err != nil {
			return err
		}
		if err := visit(class, iter.Key()[prefix:], r); err != nil {
			return err
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("read shard %d: %w", s.id, err)
	}
	return nil
}

func (s *shard) rowAt(iter *pebble.Iterator) (row, error) {
	value, err := iter.ValueAndErr()
	if err != nil {
		return row{}, fmt.Errorf("read shard %d: %w", s.id, err)
	}
	r, err := parseRow(value)
	if err != nil {
		return row{}, fmt.Errorf("read shard %d: key %x: %w", s.id, iter.Key(), err)
	}
	return r, nil
}

// Entities implements storage.Log: one scan of the markers and headers, which
// lie together, whatever number of bodies there is.
func (l *Log) Entities(visit func(entity []byte, headers []storage.Located, pending bool) error) error {
	done, err := l.use("list the entities of")
	if err != nil {
		return err
	}
	defer done()
	s := l.shard
	if err := s.fold(); err != nil {
		return fmt.Errorf("list the entities: %w", err)
	}
	first := regionKey(nil, s.id, regionPending)
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: after(bytes.Clone(first))})
	if err != nil {
		return fmt.Errorf("list the entities of shard %d: %w", s.id, err)
	}
	defer iter.Close()
	e := entityScan{shard: s, visit: visit, pending: map[string]bool{}}
	for ok := iter.First(); ok; ok = iter.Next() {
		at, err := splitPending(iter.Key(), nil)
		if err != nil {
			return fmt.Errorf("list the entities of shard %d: %w", s.id, err)
		}
		if at.class != storage.Orphan {
			e.pending[string(at.entity)] = true
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("list the entities of shard %d: %w", s.id, err)
	}
	heads := regionKey(nil, s.id, regionHeads)
	iter.SetBounds(heads, after(bytes.Clone(heads)))
	for ok := iter.First(); ok; ok = iter.Next() {
		if err := e.row(iter); err != nil {
			return err
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("list the entities of shard %d: %w", s.id, err)
	}
	return e.flush()
}

// entityScan gathers an entity's headers. They follow its marker; headers
// without a marker are tombstones.
type entityScan struct {
	shard   *shard
	visit   func([]byte, []storage.Located, bool) error
	pending map[string]bool // entities with pending records
	entity  []byte          // of the marker last seen
	open    bool            // it has not been visited yet
	headers []storage.Located
	bytes   []byte // what headers point to
	scratch []byte
}

func (e *entityScan) row(iter *pebble.Iterator) error {
	entity, key, marker, err := splitRow(iter.Key(), e.scratch[:0])
	if err != nil {
		return fmt.Errorf("list the entities of shard %d: %w", e.shard.id, err)
	}
	e.scratch = entity
	if marker {
		if err := e.flush(); err != nil {
			return err
		}
		e.entity, e.open = append(e.entity[:0], entity...), true
		return nil
	}
	r, err := e.shard.rowAt(iter)
	if err != nil {
		return err
	}
	if r.value == nil {
		return nil
	}
	if !e.open || !bytes.Equal(e.entity, entity) {
		panic(fmt.Sprintf("pebblelog: shard %d: the header at offset %d belongs to an entity without a marker", e.shard.id, r.offset))
	}
	// Growing moves the bytes, but what points to the old ones still may.
	start := len(e.bytes)
	e.bytes = append(append(e.bytes, key...), r.value...)
	mid, end := start+len(key), len(e.bytes)
	r.value = e.bytes[mid:end:end]
	e.headers = append(e.headers, storage.Located{Offset: storage.Offset(r.offset), Record: r.record(e.bytes[start:mid:mid])})
	return nil
}

// flush visits the entity whose headers are complete.
func (e *entityScan) flush() error {
	if !e.open {
		return nil
	}
	e.open = false
	err := e.visit(e.entity, e.headers, e.pending[string(e.entity)])
	e.headers, e.bytes = e.headers[:0], e.bytes[:0]
	return err
}

// Read implements storage.Log. Pebble's iterator is a snapshot: folding and
// cleaning go on beside it.
func (l *Log) Read(from storage.Offset, visit func(storage.Offset, storage.Record) error) error {
	done, err := l.use("read")
	if err != nil {
		return err
	}
	defer done()
	s := l.shard
	to := storage.Offset(s.durable.Load()) // what is visible beyond may not be synced
	iter, err := s.logIter(0)
	if err != nil {
		return fmt.Errorf("read shard %d: %w", s.id, err)
	}
	defer iter.Close()
	ok := iter.SeekLT(logKey(nil, s.id, from+1)) // the batch that from is in
	if !ok {
		ok = iter.First()
	}
	var scratch []byte
	for ; ok; ok = iter.Next() {
		if baseOf(iter.Key()) >= to {
			break
		}
		var batch recordlog.Batch
		batch, scratch, err = plainBatch(iter, scratch)
		if err != nil {
			return fmt.Errorf("read shard %d: %w", s.id, err)
		}
		it := batch.Iter()
		for it.Next() {
			r := &it.Record
			if storage.Offset(r.Offset) < from {
				continue
			}
			txn, err := batch.Txn(r)
			if err != nil {
				return fmt.Errorf("read shard %d: %w", s.id, err)
			}
			rec := storage.Record{Key: r.Key, Value: r.Value, Time: time.UnixMilli(r.Timestamp).UTC(), Txn: txn}
			if err := visit(storage.Offset(r.Offset), rec); err != nil {
				return err
			}
		}
		if err := it.Err(); err != nil {
			return fmt.Errorf("read shard %d: %w", s.id, err)
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("read shard %d: %w", s.id, err)
	}
	return nil
}
