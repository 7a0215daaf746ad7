package pebblelog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// cleanChunk is how much one pebble batch of a cleaning may hold.
const cleanChunk = 2 << 20

func (b *Backend) wantClean(s *shard) {
	if s.inClean.CompareAndSwap(false, true) {
		b.cleaner.add(s)
	}
}

func (b *Backend) cleanLoop() {
	var shards []*shard
	for {
		var ok bool
		if shards, ok = b.cleaner.take(shards); !ok {
			return
		}
		for _, s := range shards {
			s.inClean.Store(false)
			s.folding.Lock()
			wants := s.wantsCleaning()
			s.folding.Unlock()
			if !wants || b.stopping.Load() {
				continue
			}
			if err := s.clean(b.opts.Now(), nil); err != nil {
				b.fail(fmt.Errorf("clean: %w", err))
				return
			}
		}
	}
}

// clean removes from the log, below the fold, what the key table no longer
// shows: a record is live if a row has its offset, a control record if one counts by it.
// Expired tombstones lose their row first and their record with the rest.
//
// It goes up the log in several pebble batches, each complete in itself. As it
// goes up, a tombstone is never gone while what it buried is still there, nor the
// control record of an abort while there is something it aborted.
//
// Tombstones that forget, if there is one, is true of have expired whatever their age.
func (s *shard) clean(now time.Time, forget func(key []byte) bool) error {
	began := time.Now()
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	s.folding.Lock()
	folded := s.meta.folded
	s.folding.Unlock()
	live, expired, err := s.liveOffsets(folded, now.Add(-s.b.opts.TombstoneRetention).UnixMilli(), forget)
	if err != nil {
		return fmt.Errorf("shard %d: %w", s.id, err)
	}
	if err := s.dropRows(expired); err != nil {
		return fmt.Errorf("shard %d: %w", s.id, err)
	}
	c := cleaning{shard: s, folded: folded, live: live}
	if err := c.run(); err != nil {
		return fmt.Errorf("shard %d: %w", s.id, err)
	}
	s.folding.Lock()
	s.meta.written, s.meta.live = 0, c.kept
	s.b.counts.cleans.done(c.kept, began)
	s.folding.Unlock()
	return nil
}

// expiredRow is a tombstone that is too old to be kept.
type expiredRow struct {
	row    []byte
	offset int64
}

// liveOffsets scans the shard's key table for the offsets below the fold that
// are to stay, sorted, and the tombstones that are not.
func (s *shard) liveOffsets(folded storage.Offset, expiry int64, forget func([]byte) bool) (live []int64, expired []expiredRow, err error) {
	prefix := shardKey(nil, spaceKeys, s.id)
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(bytes.Clone(prefix))})
	if err != nil {
		return nil, nil, err
	}
	defer iter.Close()
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return nil, nil, err
		}
		if len(value) == 0 {
			continue // a marker
		}
		r, err := parseRow(value)
		if err != nil {
			return nil, nil, err
		}
		// What has been folded meanwhile is of no interest: the log there is not touched.
		if r.kind == rowCommitted && r.control < int64(folded) {
			live = append(live, r.control)
		}
		switch {
		case r.offset >= int64(folded):
		case r.kind == rowTombstone && (r.timestamp < expiry || forget != nil && forgets(iter.Key(), forget)):
			expired = append(expired, expiredRow{bytes.Clone(iter.Key()), r.offset})
		default:
			live = append(live, r.offset)
		}
	}
	slices.Sort(live)
	return slices.Compact(live), expired, iter.Error() // a control record is many rows'
}

// forgets asks about the record's key of a row that is not pending.
func forgets(row []byte, forget func([]byte) bool) bool {
	_, key, _, err := splitRow(row, nil)
	return err == nil && forget(key)
}

// dropRows deletes the rows of expired tombstones, unless a fold has renewed them since.
func (s *shard) dropRows(expired []expiredRow) error {
	if len(expired) == 0 {
		return nil
	}
	s.folding.Lock()
	defer s.folding.Unlock()
	batch := s.b.db.NewBatch()
	defer batch.Close()
	for _, e := range expired {
		value, closer, err := s.b.db.Get(e.row)
		if err != nil {
			return fmt.Errorf("key %x: %w", e.row, err)
		}
		r, err := parseRow(value)
		if err = errors.Join(err, closer.Close()); err != nil {
			return err
		}
		if r.offset == e.offset {
			if err := batch.Delete(e.row, nil); err != nil {
				return err
			}
		}
	}
	return s.b.write(batch, false)
}

// cleaning is one pass over a shard's log.
type cleaning struct {
	shard  *shard
	folded storage.Offset
	live   []int64 // those not yet passed
	batch  *pebble.Batch
	// Of one batch: not compressed, what of it stays, and that compressed.
	plain, buf, squeezed []byte

	kept int64 // bytes that stay
}

// run walks over the batches that have a live record, and deletes unread what
// lies between them.
func (c *cleaning) run() error {
	s := c.shard
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: logKey(nil, s.id, 0), UpperBound: logKey(nil, s.id, c.folded)})
	if err != nil {
		return err
	}
	defer iter.Close()
	c.batch = s.b.db.NewBatch()
	defer func() { c.batch.Close() }()
	for ok := iter.First(); ok && !s.b.stopping.Load(); ok = iter.Next() {
		if len(c.live) == 0 {
			if err := c.deleteFrom(iter, c.folded); err != nil {
				return err
			}
			break
		}
		if err := c.toLive(iter); err != nil {
			return err
		}
		if err := c.one(iter); err != nil {
			return err
		}
		if c.batch.Len() >= cleanChunk {
			if err := c.apply(); err != nil {
				return err
			}
		}
	}
	if err := iter.Error(); err != nil {
		return err
	}
	return c.apply()
}

// toLive moves the iterator to the batch with the next live record.
func (c *cleaning) toLive(iter *pebble.Iterator) error {
	next := storage.Offset(c.live[0])
	from := baseOf(iter.Key())
	if from == next {
		return nil
	}
	if from > next || !iter.SeekLT(logKey(nil, c.shard.id, next+1)) {
		if err := iter.Error(); err != nil {
			return err
		}
		c.missing(next)
	}
	to := baseOf(iter.Key())
	if to == from {
		return nil
	}
	return c.batch.DeleteRange(logKey(nil, c.shard.id, from), logKey(nil, c.shard.id, to), nil)
}

func (c *cleaning) deleteFrom(iter *pebble.Iterator, to storage.Offset) error {
	return c.batch.DeleteRange(logKey(nil, c.shard.id, baseOf(iter.Key())), logKey(nil, c.shard.id, to), nil)
}

func (c *cleaning) missing(offset storage.Offset) {
	panic(fmt.Sprintf("pebblelog: shard %d: the key table shows offset %d, which is not in the log", c.shard.id, offset))
}

// one keeps of the batch at the iterator what is live.
func (c *cleaning) one(iter *pebble.Iterator) error {
	stored, err := parseBatch(iter)
	if err != nil {
		return err
	}
	batch := stored
	n, _ := slices.BinarySearch(c.live, batch.NextOffset())
	live := c.live[:n]
	if len(live) == 0 {
		c.missing(storage.Offset(c.live[0]))
	}
	c.live = c.live[n:]
	if len(live) == int(batch.Count) {
		c.kept += int64(len(batch.Bytes()))
		return nil
	}
	if stored.Compressed() {
		if batch, c.plain, err = stored.AppendPlain(c.plain[:0]); err != nil {
			return err
		}
	}
	c.buf, err = batch.Filter(c.buf[:0], func(r *recordlog.Record) bool {
		if len(live) == 0 || live[0] != r.Offset {
			return false
		}
		live = live[1:]
		return true
	})
	if err != nil {
		return err
	}
	if len(live) > 0 {
		c.missing(storage.Offset(live[0]))
	}
	c.squeezed = recordlog.Squeeze(c.squeezed[:0], c.buf)
	c.kept += int64(len(c.squeezed))
	return c.batch.Set(logKey(nil, c.shard.id, storage.Offset(batch.BaseOffset)), c.squeezed, nil)
}

func (c *cleaning) apply() error {
	if c.batch.Empty() {
		return nil
	}
	if err := c.shard.b.write(c.batch, false); err != nil {
		return err
	}
	c.batch.Reset()
	return nil
}
