package pebblelog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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
		size, err := s.foldSome(to)
		if err != nil {
			return fmt.Errorf("shard %d: %w", s.id, err)
		}
		s.tail.Add(-size)
		s.b.tails.Add(-size)
		s.untouch(s.meta.folded)
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

// fold1 is one chunk's fold. Its slices alias arena, its strings too.
type fold1 struct {
	shard  *shard
	arena  []byte // copies of the batches
	latest map[string]int
	rows   []foldRow
	// entities says which have a live record in this chunk.
	entities map[string]bool
}

type foldRow struct {
	row    []byte // the key in the key table
	key    []byte // the record's
	entity []byte
	class  storage.Class
	row1   row
}

// foldSome folds up to foldChunk bytes of batches and returns their size.
func (s *shard) foldSome(to storage.Offset) (int64, error) {
	f := fold1{shard: s, latest: map[string]int{}, entities: map[string]bool{}}
	folded, err := f.collect(s.meta.folded, to)
	if err != nil {
		return 0, err
	}
	f.file()
	next := s.meta
	next.folded = folded
	next.written += int64(len(f.arena))
	if err := f.write(next); err != nil {
		return 0, err
	}
	s.meta = next
	return int64(len(f.arena)), nil
}

// collect reads the chunk and keeps the last record of each key. It returns where the chunk ends.
func (f *fold1) collect(from, to storage.Offset) (storage.Offset, error) {
	iter, err := f.shard.logIter(from)
	if err != nil {
		return 0, err
	}
	f.arena = make([]byte, 0, max(0, min(f.shard.tail.Load(), foldChunk)))
	for ok := iter.First(); ok && from < to; ok = iter.Next() {
		batch, err := parseBatch(iter)
		if err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		if len(f.arena) > 0 && len(f.arena)+len(batch.Bytes()) > cap(f.arena) {
			break // growing would move what the rows alias
		}
		if err := f.add(&batch); err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		from = storage.Offset(batch.NextOffset())
	}
	return from, errors.Join(iter.Error(), iter.Close())
}

func (f *fold1) add(batch *recordlog.Batch) error {
	start := len(f.arena)
	f.arena = append(f.arena, batch.Bytes()...)
	own, err := recordlog.Parse(f.arena[start:], batch.BaseOffset)
	if err != nil {
		return err
	}
	it := own.Iter()
	for it.Next() {
		r := &it.Record
		key := unsafe.String(unsafe.SliceData(r.Key), len(r.Key)) // the arena is not written again
		i, ok := f.latest[key]
		if !ok {
			i = len(f.rows)
			f.latest[key] = i
			f.rows = append(f.rows, foldRow{key: r.Key})
		}
		f.rows[i].row1 = row{r.Offset, r.Timestamp, r.Value}
	}
	return it.Err()
}

// file finds out where each record belongs, and sorts.
func (f *fold1) file() {
	keys := make([]byte, 0, len(f.arena)/2)
	for i := range f.rows {
		r := &f.rows[i]
		r.entity, r.class = f.shard.b.index(r.key)
		start := len(keys)
		keys = rowKey(keys, f.shard.id, r.entity, r.class, r.key)
		r.row = keys[start:len(keys):len(keys)]
		if r.class != storage.Orphan {
			f.entities[string(r.entity)] = f.entities[string(r.entity)] || r.row1.value != nil
		}
	}
	slices.SortFunc(f.rows, func(a, b foldRow) int { return bytes.Compare(a.row, b.row) })
}

func (f *fold1) write(next meta) error {
	s := f.shard
	batch := s.b.db.NewBatchWithSize(len(f.arena)/2 + 4096)
	defer batch.Close()
	for i := range f.rows {
		r := &f.rows[i]
		op := batch.SetDeferred(len(r.row), r.row1.size())
		copy(op.Key, r.row)
		r.row1.put(op.Value)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	if err := f.mark(batch); err != nil {
		return err
	}
	if err := batch.Set(shardKey(nil, spaceMeta, s.id), next.encode(), nil); err != nil {
		return err
	}
	return s.b.write(batch, false)
}

// mark sets the markers of entities that have a live record, and removes those
// of entities whose last one the chunk's tombstones end.
func (f *fold1) mark(batch *pebble.Batch) error {
	names := make([]string, 0, len(f.entities))
	for name := range f.entities {
		names = append(names, name)
	}
	slices.Sort(names)
	var key []byte
	for _, name := range names {
		live := f.entities[name]
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

// livesOn says whether the entity, of which the chunk has only tombstones, has
// a live row of a key that the chunk does not have.
func (f *fold1) livesOn(entity []byte) (lives bool, err error) {
	s := f.shard
	err = s.rows(entity, func(_ storage.Class, key []byte, r row) error {
		if _, inChunk := f.latest[string(key)]; r.value == nil || inChunk {
			return nil
		}
		lives = true
		return errStop
	})
	if err == errStop {
		err = nil
	}
	return lives, err
}

// errStop ends a visit that has found what it looked for.
var errStop = errors.New("stop")
