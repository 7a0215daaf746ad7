package memlog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// Backend holds its shards' logs in memory.
type Backend struct {
	index  storage.Index
	manual bool
	pump   sync.WaitGroup // the goroutine of New

	// delivering is held while callbacks run, so that they are in order.
	delivering sync.Mutex

	mu     sync.Mutex
	work   sync.Cond // for the pump: something to deliver or the end
	shards map[storage.ShardID]*shard
	queue  []step // appended, not durable, in the order of Append
	faults faults
	closed bool
}

// step is what one Append added.
type step struct {
	log     *Log
	end     storage.Offset
	err     error // the append fails with it
	written bool  // though it fails, the records are there
}

type shard struct {
	id      storage.ShardID
	log     *Log // the one that is not fenced
	recs    []storage.Located
	durable storage.Offset
	end     storage.Offset
}

var _ storage.Backend = (*Backend)(nil)

// New returns an empty backend whose durable callbacks come from its own goroutine.
func New(index storage.Index) *Backend {
	b := newBackend(index, false)
	b.start()
	return b
}

// NewManual returns an empty backend whose durable callbacks are called by Sync.
func NewManual(index storage.Index) *Backend { return newBackend(index, true) }

func newBackend(index storage.Index, manual bool) *Backend {
	b := &Backend{index: index, manual: manual, shards: map[storage.ShardID]*shard{}}
	b.work.L = &b.mu
	return b
}

func (b *Backend) start() {
	if !b.manual {
		b.pump.Go(b.run)
	}
}

// Open implements storage.Backend. What the shard's earlier Log has not made
// durable becomes so, held back or not.
func (b *Backend) Open(id storage.ShardID, durable func(storage.Offset, error)) (storage.Log, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fmt.Errorf("open shard %d: %w", id, storage.ErrClosed)
	}
	s := b.shards[id]
	if s == nil {
		s = &shard{id: id}
		b.shards[id] = s
	}
	b.queue = slices.DeleteFunc(b.queue, func(st step) bool {
		if st.log.shard != s {
			return false
		}
		b.settle(st)
		return true
	})
	if s.durable != s.end {
		panic(fmt.Sprintf("memlog: shard %d: durable up to %d of %d with nothing pending", id, s.durable, s.end))
	}
	s.log = &Log{b: b, shard: s, durable: durable}
	return s.log, nil
}

// Close implements storage.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.faults.held = false
	b.mu.Unlock()
	b.deliver()
	b.stop()
	return nil
}

func (b *Backend) stop() {
	b.mu.Lock()
	b.closed = true
	b.work.Broadcast()
	b.mu.Unlock()
	b.pump.Wait()
}

// Log is one shard's log until the shard is opened again.
type Log struct {
	b       *Backend
	shard   *shard
	durable func(storage.Offset, error)
	failed  error // guarded by Backend.mu
}

// usable says why the log cannot be used, if so. It wants Backend.mu held.
func (l *Log) usable(what string) error {
	if l.b.closed || l.shard.log != l {
		return fmt.Errorf("%s shard %d: %w", what, l.shard.id, storage.ErrClosed)
	}
	return nil
}

// End implements storage.Log.
func (l *Log) End() storage.Offset {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.shard.end
}

// Append implements storage.Log.
func (l *Log) Append(recs []storage.Record) error {
	b, s := l.b, l.shard
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := l.usable("append to"); err != nil {
		return err
	}
	if l.failed != nil {
		return fmt.Errorf("append to shard %d: an earlier append failed: %w", s.id, l.failed)
	}
	if len(recs) == 0 {
		return nil
	}
	for _, r := range recs {
		s.recs = append(s.recs, storage.Located{Offset: s.end, Record: clone(r)})
		s.end++
	}
	st := step{log: l, end: s.end}
	b.faults.strike(&st)
	b.queue = append(b.queue, st)
	b.work.Signal()
	return nil
}

// clone copies a record, with the precision of time that a log keeps.
func clone(r storage.Record) storage.Record {
	return storage.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Time: time.UnixMilli(r.Time.UnixMilli()).UTC(), Txn: r.Txn}
}

// Clean drops, as compaction does, the durable records of a shard that it no
// longer shows, and the tombstones older than the time given.
func (b *Backend) Clean(id storage.ShardID, tombstonesBefore time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shards[id]
	if s == nil {
		return
	}
	shown := s.shown()
	live := shown.live()
	s.recs = slices.DeleteFunc(s.recs, func(r storage.Located) bool {
		if r.Offset >= s.durable {
			return false
		}
		return !live[r.Offset] || r.Value == nil && r.Time.Before(tombstonesBefore)
	})
}

// durableRecs are the records that are durable, in order.
func (s *shard) durableRecs() []storage.Located {
	n, _ := slices.BinarySearchFunc(s.recs, s.durable, func(r storage.Located, o storage.Offset) int {
		return cmp.Compare(r.Offset, o)
	})
	return s.recs[:n]
}
