package pebblelog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// maxSet is from which size on a set's batch is closed and another begun: large
// enough to hold what a sync's time brings, small enough to read and rewrite.
const maxSet = 1 << 20

// keptSet is the memory that an idle shard's set may keep.
const keptSet = 64 << 10

// shard is a shard's log, whichever Log it is open through.
type shard struct {
	b  *Backend
	id storage.ShardID

	opening sync.Mutex // held by Open
	loaded  bool       // guarded by opening

	durable atomic.Int64 // the end of the last synced set

	mu        sync.Mutex
	log       *Log // the one that is not fenced
	end       storage.Offset
	delivered storage.Offset // up to where a Log was told
	told      sync.Cond      // delivered moved, or the backend failed
	set       *recordlog.Builder
	full      []*recordlog.Builder // the set's batches before this one
	setLog    *Log                 // who appended the set
	setBegan  time.Time            // when its first record was appended
	spare     *recordlog.Builder   // the committer's last, for the next set
	dirty     bool                 // in the committer's queue
	unfolded  unfolded

	tail     atomic.Int64 // the weight of what is durable and not folded
	inFolder atomic.Bool
	inClean  atomic.Bool

	folding sync.Mutex // one fold at a time; guards meta, pending and the write of k rows
	meta    meta
	pending *pendings // nil: not read

	cleaning sync.Mutex // one cleaning at a time; taken before folding
}

func newShard(b *Backend, id storage.ShardID) *shard {
	s := &shard{b: b, id: id, set: new(recordlog.Builder), spare: new(recordlog.Builder)}
	s.unfolded.init(func(key []byte) ([]byte, storage.Class) { return b.index(id, key) })
	s.told.L = &s.mu
	return s
}

// fence ends the earlier Log: it appends no more, and what it had appended is
// durable and told when fence returns.
func (s *shard) fence() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
	for s.delivered < s.end && s.b.failedWith() == nil {
		s.told.Wait()
	}
	return s.b.failedWith()
}

// load finds out where the log ends and folds its tail, once.
//
// REQUIRES: opening held.
func (s *shard) load() error {
	if s.loaded {
		return nil
	}
	if err := s.loadMeta(); err != nil {
		return err
	}
	end, tail, err := s.findEnd()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.end, s.delivered = end, end
	s.set.Reset(int64(end), storage.Txn{})
	s.mu.Unlock()
	s.durable.Store(int64(end))
	s.weigh(tail)
	if err := s.fold(); err != nil {
		return err
	}
	s.weigh(-s.tail.Load())
	s.loaded = true
	return nil
}

// weigh counts what is not folded.
func (s *shard) weigh(by int64) {
	s.tail.Add(by)
	s.b.tails.Add(by)
}

func (s *shard) loadMeta() error {
	value, closer, err := s.b.db.Get(shardKey(nil, spaceMeta, s.id))
	if errors.Is(err, pebble.ErrNotFound) {
		s.meta = meta{index: s.b.opts.IndexVersion}
		return nil
	}
	if err != nil {
		return err
	}
	s.meta, err = parseMeta(value)
	if err = errors.Join(err, closer.Close()); err != nil {
		return err
	}
	if s.meta.index != s.b.opts.IndexVersion {
		return s.refile()
	}
	return nil
}

// findEnd reads the log's end, and its bytes after the fold. Cleaning may have
// removed the last batch, but never beyond the fold: there the log has no holes, unless
// one of pebble's files is gone, which pebble itself would not notice.
func (s *shard) findEnd() (end storage.Offset, tail int64, err error) {
	iter, err := s.logIter(s.meta.folded)
	if err != nil {
		return 0, 0, err
	}
	end = s.meta.folded
	for ok := iter.First(); ok; ok = iter.Next() {
		batch, err := parseBatch(iter)
		if err == nil && storage.Offset(batch.BaseOffset) != end {
			err = fmt.Errorf("%w: the log goes on at offset %d after %d: what was between them is gone", storage.ErrCorrupt, batch.BaseOffset, end)
		}
		if err != nil {
			return 0, 0, errors.Join(err, iter.Close())
		}
		end = storage.Offset(batch.NextOffset())
		size, err := batch.PlainSize()
		if err != nil {
			return 0, 0, errors.Join(err, iter.Close())
		}
		tail += int64(size)
	}
	return end, tail, errors.Join(iter.Error(), iter.Close())
}

// logIter iterates over the batches whose base offset is from or later.
func (s *shard) logIter(from storage.Offset) (*pebble.Iterator, error) {
	return s.b.db.NewIter(&pebble.IterOptions{
		LowerBound: logKey(nil, s.id, from),
		UpperBound: after(shardKey(nil, spaceLog, s.id)),
	})
}

// parseBatch reads the batch that the iterator is at. It is valid until the iterator moves.
func parseBatch(iter *pebble.Iterator) (recordlog.Batch, error) {
	value, err := iter.ValueAndErr()
	if err != nil {
		return recordlog.Batch{}, err
	}
	return checkBatch(baseOf(iter.Key()), value)
}

// plainBatch reads the batch that the iterator is at, with its records not
// compressed. It is valid until the iterator moves or scratch is used again.
func plainBatch(iter *pebble.Iterator, scratch []byte) (recordlog.Batch, []byte, error) {
	batch, err := parseBatch(iter)
	if err != nil || !batch.Compressed() {
		return batch, scratch, err
	}
	return batch.AppendPlain(scratch[:0])
}

// checkBatch reads the batch that is stored under a base offset.
func checkBatch(base storage.Offset, value []byte) (recordlog.Batch, error) {
	batch, err := recordlog.Parse(value, int64(base))
	if err != nil {
		return batch, fmt.Errorf("log at offset %d: %w", base, err)
	}
	if batch.BaseOffset != int64(base) || len(batch.Bytes()) != len(value) {
		return batch, fmt.Errorf("%w: log at offset %d: the batch says %d, with %d of %d bytes",
			storage.ErrCorrupt, base, batch.BaseOffset, len(batch.Bytes()), len(value))
	}
	return batch, nil
}

// Log is one shard's log until the shard is opened again.
type Log struct {
	shard   *shard
	durable func(storage.Offset, error)
}

// usable says why the log cannot be used, if so.
//
// REQUIRES: shard.mu held.
func (l *Log) usable(what string) error {
	if err := l.shard.b.failedWith(); err != nil {
		return fmt.Errorf("%s shard %d: %w", what, l.shard.id, err)
	}
	if l.shard.log != l {
		return fmt.Errorf("%s shard %d: %w", what, l.shard.id, storage.ErrClosed)
	}
	return nil
}

// End implements storage.Log.
func (l *Log) End() storage.Offset {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	return l.shard.end
}

// Append implements storage.Log: it encodes the records into the shard's set,
// which the committer takes when the sync under way has ended.
func (l *Log) Append(recs []storage.Record) error {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := l.usable("append to"); err != nil {
		return err
	}
	if len(recs) == 0 {
		return nil
	}
	if s.set.Len() >= maxSet {
		s.begin(recs[0].Txn)
	}
	step := s.unfolded.step(recs)
	for i := range recs {
		r := &recs[i]
		if r.Txn != s.set.Txn() || r.Txn.Kind.Control() {
			s.begin(r.Txn)
		}
		if s.set.Count() == 0 {
			s.unfolded.begin(s.end)
		}
		s.set.Append(r.Key, r.Value, r.Time.UnixMilli())
		s.unfolded.add(&step, r, s.end)
		s.end++
	}
	if by := s.unfolded.end(&step, recs, s.end); by != 0 {
		s.weigh(-by)
	}
	s.setLog = l
	if !s.dirty {
		s.dirty, s.setBegan = true, time.Now()
		s.b.committer.add(s)
	}
	return nil
}

// begin begins another batch of the set, of records of a transaction.
func (s *shard) begin(txn storage.Txn) {
	if s.set.Count() > 0 {
		s.full = append(s.full, s.set)
		s.set = s.b.builders.Get().(*recordlog.Builder)
	}
	s.set.Reset(int64(s.end), txn)
}
