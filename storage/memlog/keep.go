package memlog

import (
	"fmt"
	"slices"

	"github.com/kcoord/kcoord/storage"
)

var _ storage.Keeper = (*Backend)(nil)

// Latest implements storage.Keeper.
func (b *Backend) Latest(id storage.ShardID, visit func(storage.Offset, storage.Record) error) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return fmt.Errorf("read shard %d: %w", id, storage.ErrClosed)
	}
	var recs, pending []storage.Located
	if s := b.shards[id]; s != nil {
		shown := s.shown()
		for _, l := range shown.latest {
			recs = append(recs, l.Located)
		}
		pending = shown.pendingOf(func([]byte) bool { return true })
	}
	b.mu.Unlock()
	byKey(recs)
	return show(append(recs, pending...), visit)
}

// Purge implements storage.Keeper.
func (b *Backend) Purge(id storage.ShardID, forget func(key []byte) bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("purge shard %d: %w", id, storage.ErrClosed)
	}
	s := b.shards[id]
	if s == nil {
		return nil
	}
	shown := s.shown()
	live := shown.live()
	s.recs = slices.DeleteFunc(s.recs, func(r storage.Located) bool {
		return r.Offset < s.durable && (!live[r.Offset] || r.Value == nil && forget(r.Key))
	})
	return nil
}
