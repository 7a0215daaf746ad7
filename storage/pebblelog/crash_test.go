package pebblelog

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// TestCrashAnywhere cuts the file system while three shards append, fold and
// clean, keeps a random part of what was not synced, and opens what is left.
func TestCrashAnywhere(t *testing.T) {
	crashes := 60
	if testing.Short() {
		crashes = 15
	}
	fs := vfs.NewCrashableMem()
	opts := small(fs)
	opts.CleanBytes = 8 << 10
	b := mustOpen(t, "data", opts)
	const shards = 3
	var acked [shards]atomic.Int64
	var stop atomic.Bool
	progress := make(chan struct{}, 1)
	var appending sync.WaitGroup
	for id := range shards {
		s, err := newStepper(b, storage.ShardID(id), func(end storage.Offset) {
			acked[id].Store(int64(end))
			select {
			case progress <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		appending.Go(func() {
			if err := s.run(stop.Load); err != nil {
				t.Errorf("shard %d: %v", id, err)
			}
		})
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for crash := range crashes {
		for range rng.IntN(20) + 1 {
			<-progress
		}
		var before [shards]int64
		for id := range before {
			before[id] = acked[id].Load()
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		ok := t.Run(fmt.Sprint(crash), func(t *testing.T) {
			restarted := mustOpen(t, "data", small(after))
			for id, end := range before {
				verifySteps(t, restarted, storage.ShardID(id), storage.Offset(end))
			}
			if err := restarted.Close(); err != nil {
				t.Fatal(err)
			}
		})
		if !ok {
			t.Logf("seed %d", seed)
			break
		}
	}
	stop.Store(true)
	appending.Wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
