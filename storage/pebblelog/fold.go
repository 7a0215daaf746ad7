package pebblelog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// foldChunk bounds what one fold holds in memory and writes at once.
const foldChunk = 4 << 20

// wantFold queues a shard for the folder.
func (b *Backend) wantFold(s *shard) {
	if s.inFolder.CompareAndSwap(false, true) {
		b.folder.add(s)
	}
}

// foldLoop folds the shards that ask for it, and the longest tails while all
// together are too long.
func (b *Backend) foldLoop() {
	var shards []*shard
	for {
		var ok bool
		if shards, ok = b.folder.take(shards); !ok {
			return
		}
		for _, s := range shards {
			s.inFolder.Store(false)
			if s.tail.Load() >= b.opts.FoldBytes && !b.foldOne(s) {
				return
			}
		}
		for b.tails.Load() >= b.opts.FoldTotalBytes {
			if !b.foldLongest() {
				return
			}
		}
	}
}

// foldLongest folds the shard with the longest tail. It returns false when the backend has failed.
func (b *Backend) foldLongest() bool {
	var longest *shard
	for _, s := range b.allShards() {
		if longest == nil || s.tail.Load() > longest.tail.Load() {
			longest = s
		}
	}
	return b.foldOne(longest)
}

func (b *Backend) foldOne(s *shard) bool {
	if err := s.fold(); err != nil {
		b.fail(fmt.Errorf("fold: %w", err))
		return false
	}
	return true
}

// fold brings the key table up to what is durable. The rows and the new fold
// position are one pebble batch, which needs no sync: should a crash lose it,
// the log has it all, and pebble's WAL loses nothing before it either.
func (s *shard) fold() error {
	s.folding.Lock()
	defer s.folding.Unlock()
	to := storage.Offset(s.durable.Load())
	for s.meta.folded < to {
		began := time.Now()
		size, err := s.foldSome(to)
		if err != nil {
			return fmt.Errorf("shard %d: %w", s.id, err)
		}
		s.b.counts.folds.done(size, began)
		s.mu.Lock()
		s.weigh(-s.unfolded.forget(s.meta.folded))
		s.mu.Unlock()
	}
	if s.wantsCleaning() {
		s.b.wantClean(s)
	}
	return nil
}

// wantsCleaning says whether enough was written since the last cleaning that
// half of the log may be superseded.
//
// REQUIRES: folding held.
func (s *shard) wantsCleaning() bool {
	return s.meta.written > max(s.b.opts.CleanBytes, s.meta.live)
}

// fold is the work on one chunk. What it points to lies in arena and keys,
// which are not moved or written again until reset.
type fold struct {
	shard  *shard
	arena  []byte       // copies of the batches, not compressed
	stored int64        // bytes that the batches take in the log
	read   int64        // and not compressed
	bygone []*tailBatch // batches that need not be read, in order
	passed int          // of them
	plain  []foldBatch
	at     int    // the plain batch that is being read, or inTxn
	keys   []byte // the keys in the key table
	latest map[string]int
	rows   []foldRow
	runs   []run // of rows, in order
	// entities says which have a live record in this chunk.
	entities map[string]bool
	names    []string
	// Of transactions: the pending records that were met, and the rows of those that ended.
	fresh []freshRow
	gone  [][]byte
}

type foldRow struct {
	row    []byte // the key in the key table
	key    []byte // the record's
	latest row
	in     int // the plain batch that latest is in, or inTxn
}

// run is some of a fold's rows that follow one another: of one entity and class, in order.
type run struct{ from, to int }

// folds are kept for the next: a fold's memory is that of its chunk.
var folds = sync.Pool{New: func() any { return &fold{latest: map[string]int{}, entities: map[string]bool{}} }}

func (f *fold) reset() {
	clear(f.bygone)
	clear(f.latest)
	clear(f.entities)
	clear(f.rows)
	clear(f.names)
	clear(f.fresh)
	clear(f.gone)
	*f = fold{
		arena: f.arena[:0], bygone: f.bygone[:0], plain: f.plain[:0], keys: f.keys[:0], latest: f.latest, rows: f.rows[:0], runs: f.runs[:0], entities: f.entities, names: f.names[:0],
		fresh: f.fresh[:0], gone: f.gone[:0],
	}
}

// foldSome folds up to foldChunk bytes of batches and returns their size.
func (s *shard) foldSome(to storage.Offset) (size int64, err error) {
	f := folds.Get().(*fold)
	defer func() {
		f.reset()
		folds.Put(f)
		if err != nil {
			s.pending = nil // half way through the chunk
		}
	}()
	f.shard = s
	if s.pending == nil {
		if err := s.loadPendings(); err != nil {
			return 0, err
		}
	}
	folded, err := f.collect(s.meta.folded, to)
	if err != nil {
		return 0, err
	}
	f.file()
	next := s.meta
	next.folded = folded
	next.written += f.stored - f.dead()
	if err := f.write(next); err != nil {
		return 0, err
	}
	s.meta = next
	f.settlePending()
	return f.read, nil
}

// collect reads the chunk and keeps the last record of each key. It returns where the chunk ends.
func (f *fold) collect(from, to storage.Offset) (storage.Offset, error) {
	s := f.shard
	s.mu.Lock()
	f.bygone = s.unfolded.superseded(to, f.bygone)
	s.mu.Unlock()
	from, _ = f.skip(from)
	iter, err := s.logIter(from)
	if err != nil {
		return 0, err
	}
	if size := int(min(s.tail.Load(), foldChunk)); size > cap(f.arena) {
		f.arena = make([]byte, 0, size)
	}
	var key [logKeySize]byte
	for ok := iter.First(); ok && from < to; {
		value, err := iter.ValueAndErr()
		if err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		batch, err := checkBatch(baseOf(iter.Key()), value)
		if err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		size, err := batch.PlainSize()
		if err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		if len(f.arena) > 0 && len(f.arena)+size > cap(f.arena) {
			break // growing would move what the rows alias
		}
		f.stored += int64(len(value))
		f.read += int64(size)
		if from, err = f.add(&batch); err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		var skipped bool
		if from, skipped = f.skip(from); skipped {
			ok = iter.SeekGE(logKey(key[:0], s.id, from))
		} else {
			ok = iter.Next()
		}
	}
	return from, errors.Join(iter.Error(), iter.Close())
}

// skip passes over the batches at an offset that need not be read, and returns where they end.
func (f *fold) skip(from storage.Offset) (to storage.Offset, some bool) {
	for ; f.passed < len(f.bygone); f.passed++ {
		b := f.bygone[f.passed]
		if b.base < from {
			panic(fmt.Sprintf("pebblelog: shard %d: no batch begins at offset %d, where a superseded one does", f.shard.id, b.base))
		}
		if b.base > from {
			break
		}
		f.plain = append(f.plain, foldBatch{base: b.base, size: int64(b.stored)})
		f.stored += int64(b.stored)
		f.read += int64(b.size)
		from, some = b.base+storage.Offset(b.records), true
	}
	return from, some
}

// add takes in a batch and returns where it ends.
func (f *fold) add(stored *recordlog.Batch) (storage.Offset, error) {
	batch, arena, err := stored.AppendPlain(f.arena)
	if err != nil {
		return 0, err
	}
	f.arena = arena
	if f.at = inTxn; batch.Plain() {
		f.at = len(f.plain)
		f.plain = append(f.plain, foldBatch{base: storage.Offset(batch.BaseOffset), size: int64(len(stored.Bytes()))})
	}
	it := batch.Iter()
	for it.Next() {
		switch r := &it.Record; {
		case batch.Plain() && r.Value != nil:
			f.put(r.Key, row{kind: rowValue, offset: r.Offset, timestamp: r.Timestamp, value: r.Value})
		case batch.Attributes&recordlog.Control != 0:
			txn, err := batch.Txn(r)
			if err == nil {
				err = f.resolve(txn, r.Offset)
			}
			if err != nil {
				return 0, err
			}
		case r.Value == nil: // in a transaction, too
			f.bury(f.put(r.Key, row{kind: rowTombstone, offset: r.Offset, timestamp: r.Timestamp}))
		default:
			f.pend(batch.ProducerID, r.Key, row{kind: rowPending, epoch: batch.ProducerEpoch, offset: r.Offset, timestamp: r.Timestamp, value: r.Value})
		}
	}
	return storage.Offset(batch.NextOffset()), it.Err()
}

// put makes a record its key's latest. The key stays where it is: it is in the arena, or nobody else's.
func (f *fold) put(recordKey []byte, r row) (key string) {
	key = unsafe.String(unsafe.SliceData(recordKey), len(recordKey))
	i, ok := f.latest[key]
	if !ok {
		i = len(f.rows)
		f.latest[key] = i
		f.rows = append(f.rows, foldRow{key: recordKey, in: inTxn})
	}
	was := &f.rows[i]
	if was.in != inTxn {
		f.plain[was.in].live--
	}
	if was.latest, was.in = r, f.at; f.at != inTxn {
		f.plain[f.at].live++
	}
	return key
}

// file finds out where each record belongs, and sorts. What follows one of the same
// entity, as most do, takes over what was found for that.
func (f *fold) file() {
	var last struct {
		entity, prefix []byte
		class          storage.Class
		live           bool // known to have a live record
	}
	for i := range f.rows {
		r := &f.rows[i]
		entity, class := f.shard.b.index(f.shard.id, r.key)
		start := len(f.keys)
		if i > 0 && class == last.class && bytes.Equal(entity, last.entity) {
			f.keys = append(append(f.keys, last.prefix...), r.key...)
			if bytes.Compare(f.rows[i-1].key, r.key) > 0 {
				f.runs = append(f.runs, run{i, i})
			}
		} else {
			f.runs = append(f.runs, run{i, i})
			f.keys = rowKey(f.keys, f.shard.id, entity, class, r.key)
			last.entity, last.class, last.live = entity, class, false
			last.prefix = f.keys[start : len(f.keys)-len(r.key)]
		}
		r.row = f.keys[start:len(f.keys):len(f.keys)]
		f.runs[len(f.runs)-1].to++
		if class == storage.Orphan || last.live {
			continue
		}
		live, known := f.entities[string(entity)]
		last.live = live || r.latest.value != nil
		if !known || last.live != live {
			f.entities[string(entity)] = last.live
		}
	}
	f.sort()
}

// sort puts the runs in order. As a rule each is one entity's, all of it, and no other
// lies between: then the rows need not be sorted, which would take ten times as long.
func (f *fold) sort() {
	slices.SortFunc(f.runs, func(a, b run) int { return bytes.Compare(f.rows[a.from].row, f.rows[b.from].row) })
	for i := 1; i < len(f.runs); i++ {
		if bytes.Compare(f.rows[f.runs[i-1].to-1].row, f.rows[f.runs[i].from].row) > 0 {
			slices.SortFunc(f.rows, func(a, b foldRow) int { return bytes.Compare(a.row, b.row) })
			f.runs = append(f.runs[:0], run{0, len(f.rows)})
			return
		}
	}
}

func (f *fold) write(next meta) error {
	s := f.shard
	batch := s.b.db.NewBatchWithSize(2*len(f.keys) + 4096)
	defer batch.Close()
	for _, run := range f.runs {
		for i := run.from; i < run.to; i++ {
			r := &f.rows[i]
			if err := setRow(batch, r.row, &r.latest); err != nil {
				return err
			}
		}
	}
	if err := f.writePending(batch); err != nil {
		return err
	}
	if err := f.mark(batch); err != nil {
		return err
	}
	if err := f.bare(batch); err != nil {
		return err
	}
	if err := batch.Set(shardKey(nil, spaceMeta, s.id), next.encode(), nil); err != nil {
		return err
	}
	return s.b.write(batch, false)
}

func setRow(batch *pebble.Batch, key []byte, r *row) error {
	op := batch.SetDeferred(len(key), r.size())
	copy(op.Key, key)
	r.put(op.Value)
	return op.Finish()
}

// mark sets the markers of entities that have a live record, pending or not, and
// removes those of entities whose last one ends in the chunk.
func (f *fold) mark(batch *pebble.Batch) error {
	for name := range f.entities {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	var key []byte
	for _, name := range f.names {
		live := f.entities[name] || f.shard.pending.entities[name] > 0
		if !live {
			var err error
			if live, err = f.livesOn([]byte(name)); err != nil {
				return err
			}
		}
		key = markerKey(key[:0], f.shard.id, []byte(name))
		var err error
		if live {
			err = batch.Set(key, nil, nil)
		} else {
			err = batch.Delete(key, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// livesOn says whether the entity, of which the chunk leaves nothing alive, has a
// live row of a key that the chunk does not have.
func (f *fold) livesOn(entity []byte) (lives bool, err error) {
	s := f.shard
	iter, err := s.pendingIter(entity)
	if err != nil {
		return false, err
	}
	defer iter.Close()
	err = s.rows(iter, entity, func(_ storage.Class, key []byte, r row) error {
		if _, inChunk := f.latest[string(key)]; r.value == nil || inChunk {
			return nil
		}
		lives = true
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return lives, err
}

// errStop ends a visit that has found what it looked for.
var errStop = errors.New("stop")
