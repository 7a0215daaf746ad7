package pebblelog

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
)

// refile files the rows of the shard's key table by the Index of this build,
// where another version filed them: orphans that it has come to know find their
// entities. It is one batch, and happens once an upgrade.
//
// REQUIRES: opening held, nothing else uses the shard.
func (s *shard) refile() error {
	prefix := shardKey(nil, spaceKeys, s.id)
	end := after(bytes.Clone(prefix))
	iter, err := s.b.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: end})
	if err != nil {
		return err
	}
	batch := s.b.db.NewBatch()
	defer batch.Close()
	err = batch.DeleteRange(prefix, end, nil)
	for ok := iter.First(); ok && err == nil; ok = iter.Next() {
		err = s.refileRow(batch, iter)
	}
	if err = errors.Join(err, iter.Error(), iter.Close()); err != nil {
		return err
	}
	s.meta.index, s.pending = s.b.opts.IndexVersion, nil
	if err := batch.Set(shardKey(nil, spaceMeta, s.id), s.meta.encode(), nil); err != nil {
		return err
	}
	return s.b.write(batch, false)
}

func (s *shard) refileRow(batch *pebble.Batch, iter *pebble.Iterator) error {
	if iter.Key()[regionKeySize-1] == regionPending {
		return s.refilePending(batch, iter)
	}
	_, key, marker, err := splitRow(iter.Key(), nil)
	if err != nil || marker {
		return err
	}
	r, err := s.rowAt(iter)
	if err != nil {
		return err
	}
	value, err := iter.ValueAndErr()
	if err != nil {
		return err
	}
	entity, class := s.b.index(s.id, key)
	if err := batch.Set(rowKey(nil, s.id, entity, class, key), value, nil); err != nil {
		return err
	}
	if class == storage.Orphan || r.value == nil {
		return nil
	}
	return batch.Set(markerKey(nil, s.id, entity), nil, nil)
}

func (s *shard) refilePending(batch *pebble.Batch, iter *pebble.Iterator) error {
	at, err := splitPending(iter.Key(), nil)
	if err != nil {
		return err
	}
	value, err := iter.ValueAndErr()
	if err != nil {
		return err
	}
	entity, class := s.b.index(s.id, at.key)
	if err := batch.Set(pendingKey(nil, s.id, entity, class, at.key, at.producer), value, nil); err != nil || class == storage.Orphan {
		return err
	}
	return batch.Set(markerKey(nil, s.id, entity), nil, nil)
}
