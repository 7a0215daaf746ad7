package pebblelog

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// The crash tests append one kind of step: step n writes n under each of five
// keys. Whatever a crash leaves, all keys then have the same number, and it
// tells where the log ends. Folding and cleaning don't change that.
const stepKeys = 5

// window is how many steps may be appended and not yet durable.
const window = 8

func stepRecords(n int) []storage.Record {
	recs := make([]storage.Record, stepKeys)
	for i := range recs {
		recs[i] = body("e", strconv.Itoa(i), strconv.Itoa(n))
	}
	return recs
}

// stepper appends steps to one shard and tells each end that is acknowledged.
type stepper struct {
	log  storage.Log
	mu   sync.Mutex
	told sync.Cond
	end  storage.Offset
	err  error
}

func newStepper(b *Backend, id storage.ShardID, acked func(storage.Offset)) (*stepper, error) {
	s := &stepper{}
	s.told.L = &s.mu
	log, err := b.Open(id, func(end storage.Offset, err error) {
		if err == nil {
			acked(end)
		}
		s.mu.Lock()
		s.end, s.err = max(s.end, end), err
		s.told.Broadcast()
		s.mu.Unlock()
	})
	if err != nil {
		return nil, err
	}
	s.log, s.end = log, log.End()
	return s, nil
}

// run appends until stop says so or the log fails.
func (s *stepper) run(stop func() bool) error {
	for !stop() {
		s.mu.Lock()
		for s.log.End()-s.end >= window*stepKeys && s.err == nil {
			s.told.Wait()
		}
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if err := s.log.Append(stepRecords(int(s.log.End()) / stepKeys)); err != nil {
			return err
		}
	}
	return nil
}

// verifySteps checks what a crash has left of a shard.
func verifySteps(t *testing.T, b *Backend, id storage.ShardID, acked storage.Offset) {
	t.Helper()
	log, _ := openShard(t, b, id)
	end := log.End()
	if end < acked || end%stepKeys != 0 {
		t.Fatalf("shard %d ends at %d, with %d acknowledged and %d records a step", id, end, acked, stepKeys)
	}
	if end == 0 {
		return
	}
	last := strconv.Itoa(int(end)/stepKeys - 1)
	keys := 0
	err := log.Load([]byte("e"), func(off storage.Offset, r storage.Record) error {
		keys++
		if string(r.Value) != last || off < end-stepKeys {
			return fmt.Errorf("key %q has step %s at offset %d, the log ends at %d", r.Key, r.Value, off, end)
		}
		return nil
	})
	if err != nil || keys != stepKeys {
		t.Fatalf("shard %d: %d keys: %v", id, keys, err)
	}
	var tail []storage.Offset
	err = log.Read(0, func(off storage.Offset, r storage.Record) error {
		if string(r.Value) != strconv.Itoa(int(off)/stepKeys) || string(r.Key) != string(logtest.Key(storage.Body, "e", strconv.Itoa(int(off)%stepKeys))) {
			return fmt.Errorf("offset %d has %q = %s", off, r.Key, r.Value)
		}
		tail = append(tail, off)
		return nil
	})
	if err != nil || len(tail) < stepKeys || tail[len(tail)-stepKeys] != end-stepKeys {
		t.Fatalf("shard %d: %d records, the log ends at %d: %v", id, len(tail), end, err)
	}
}
