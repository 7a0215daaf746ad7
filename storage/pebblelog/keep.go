package pebblelog

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
)

var _ storage.Keeper = (*Backend)(nil)

// reach registers a use of a shard, be it open or not, that Close waits for. Its
// key table has all that is durable now.
func (b *Backend) reach(id storage.ShardID, what string) (s *shard, done func(), err error) {
	if id < 0 || id > maxShard {
		return nil, nil, fmt.Errorf("%s shard %d: ids are 0 to %d", what, id, maxShard)
	}
	if !b.enter() {
		return nil, nil, fmt.Errorf("%s shard %d: %w", what, id, storage.ErrClosed)
	}
	s = b.shard(id)
	s.opening.Lock()
	err = s.load()
	s.opening.Unlock()
	if err == nil {
		err = s.fold()
	}
	if err != nil {
		b.users.Done()
		return nil, nil, fmt.Errorf("%s shard %d: %w", what, id, err)
	}
	return s, b.users.Done, nil
}

// Latest implements storage.Keeper: one scan of the key table.
func (b *Backend) Latest(id storage.ShardID, visit func(storage.Offset, storage.Record) error) error {
	s, done, err := b.reach(id, "read")
	if err != nil {
		return err
	}
	defer done()
	prefix := shardKey(nil, spaceKeys, id)
	iter, err := b.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(bytes.Clone(prefix))})
	if err != nil {
		return fmt.Errorf("read shard %d: %w", id, err)
	}
	defer iter.Close()
	var scratch []byte
	for ok := iter.First(); ok && !b.stopping.Load(); ok = iter.Next() {
		if err := s.latestAt(iter, &scratch, visit); err != nil {
			return err
		}
	}
	if err := iter.Error(); err != nil {
		return fmt.Errorf("read shard %d: %w", id, err)
	}
	if b.stopping.Load() {
		return fmt.Errorf("read shard %d: %w", id, storage.ErrClosed)
	}
	return nil
}

// latestAt visits the record of the row that the iterator is at, unless it is a marker.
func (s *shard) latestAt(iter *pebble.Iterator, scratch *[]byte, visit func(storage.Offset, storage.Record) error) error {
	if iter.Key()[regionKeySize-1] == regionPending {
		at, err := splitPending(iter.Key(), (*scratch)[:0])
		if err != nil {
			return fmt.Errorf("read shard %d: %w", s.id, err)
		}
		*scratch = at.entity
		r, err := s.rowAt(iter)
		if err != nil {
			return err
		}
		rec := r.record(at.key)
		rec.Txn = storage.Txn{Producer: at.producer, Epoch: r.epoch, Kind: storage.Pending}
		return visit(storage.Offset(r.offset), rec)
	}
	entity, key, marker, err := splitRow(iter.Key(), (*scratch)[:0])
	if err != nil {
		return fmt.Errorf("read shard %d: %w", s.id, err)
	}
	*scratch = entity
	if marker {
		return nil
	}
	r, err := s.rowAt(iter)
	if err != nil {
		return err
	}
	return visit(storage.Offset(r.offset), r.record(key))
}

// Purge implements storage.Keeper.
func (b *Backend) Purge(id storage.ShardID, forget func(key []byte) bool) error {
	s, done, err := b.reach(id, "purge")
	if err != nil {
		return err
	}
	defer done()
	if err := s.clean(b.opts.Now(), forget); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if b.stopping.Load() { // it may have ended before its end
		return fmt.Errorf("purge shard %d: %w", id, storage.ErrClosed)
	}
	return nil
}
