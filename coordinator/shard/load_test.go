package shard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/memlog"
)

// unopenable is a store that one shard cannot be read from.
type unopenable struct{ storage.Backend }

func (unopenable) Open(storage.ShardID, func(storage.Offset, error)) (storage.Log, error) {
	return nil, storage.ErrCorrupt
}

// TestUnreadableIsToldOnce asks a shard that cannot be opened: each is asked to try again, and
// the log is not filled by their trying.
func TestUnreadableIsToldOnce(t *testing.T) {
	backend := memlog.NewManual(toyIndex)
	defer backend.Close()
	now, told := time.UnixMilli(1e12), 0
	s := shard.New(shard.Options[ask, rec, string, string]{
		Backend: unopenable{backend}, Codec: toyCodec{}, New: func() machine.Machine[ask, rec, string, string] { return newToy(false) },
		Now: func() time.Time { return now }, Failed: func(error) { told++ },
	})
	defer s.Close()
	for i := range 1000 {
		s.Do(ask{op: "get", box: "b"}, func(_ string, err error) {
			if !errors.Is(err, shard.ErrLoading) {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	now = now.Add(time.Minute)
	s.Fire()
	if told != 2 {
		t.Errorf("told %d times a minute later", told)
	}
}
