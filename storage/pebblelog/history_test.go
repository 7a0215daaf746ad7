package pebblelog

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// history is a shard's log and all that was ever appended to it.
type history struct {
	id  storage.ShardID
	log storage.Log
	rng *rand.Rand

	mu    sync.Mutex
	told  sync.Cond
	acked storage.Offset
	recs  []storage.Located
	ends  map[storage.Offset]bool // where steps end
}

func newHistory(t *testing.T, b *Backend, id storage.ShardID, seed uint64, progress chan<- struct{}) *history {
	t.Helper()
	h := &history{id: id, rng: rand.New(rand.NewPCG(seed, uint64(id)+1)), ends: map[storage.Offset]bool{0: true}}
	h.told.L = &h.mu
	log, err := b.Open(id, func(end storage.Offset, err error) {
		h.mu.Lock()
		h.acked = end
		h.told.Broadcast()
		h.mu.Unlock()
		select {
		case progress <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	h.log = log
	return h
}

// step appends any step, and waits for it as a rule, so that most batches are small.
func (h *history) step() error {
	recs := logtest.AnyStep(int(h.rng.Uint32()))
	if h.rng.IntN(20) == 0 && recs[0].Value != nil && !recs[0].Txn.Kind.Control() {
		recs[0].Value = make([]byte, h.rng.IntN(3000))
	}
	at := h.log.End()
	h.mu.Lock()
	for i, r := range recs {
		h.recs = append(h.recs, storage.Located{Offset: at + storage.Offset(i), Record: r})
	}
	h.ends[at+storage.Offset(len(recs))] = true
	h.mu.Unlock()
	if err := h.log.Append(recs); err != nil {
		return err
	}
	if h.rng.IntN(3) > 0 {
		h.await(h.log.End())
	}
	return nil
}

func (h *history) await(end storage.Offset) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.acked < end {
		h.told.Wait()
	}
}

func (h *history) acknowledged() storage.Offset {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked
}

// verify checks what is left of the log in a backend.
func (h *history) verify(t *testing.T, b *Backend, acked storage.Offset) {
	t.Helper()
	log, _ := openShard(t, b, h.id)
	end := log.End()
	h.mu.Lock()
	whole, recs := h.ends[end], h.recs[:end]
	h.mu.Unlock()
	if end < acked || !whole {
		t.Fatalf("shard %d ends at %d, with %d acknowledged; a step ends there: %v", h.id, end, acked, whole)
	}
	logtest.ComesTo(t, log, recs)
}

// busy are options under which everything happens all the time: folds, cleanings in which
// every tombstone has expired, flushes and compactions.
func busy(fs vfs.FS, rng *rand.Rand) Options {
	o := small(fs)
	o.FoldBytes, o.FoldTotalBytes = 200+rng.Int64N(3000), 500+rng.Int64N(6000)
	o.CleanBytes, o.MemTableBytes = 500+rng.Int64N(8<<10), 16<<10<<rng.IntN(4)
	o.Now = func() time.Time { return time.Now().Add(1e6 * time.Hour) }
	return o
}

// TestCrashBesideEverything appends any steps, transactions too, to three shards that fold
// and clean at the same time, and opens what a crash would leave, or a checkpoint: it comes to what
// was appended, before a cleaning and after.
func TestCrashBesideEverything(t *testing.T) {
	crashes := 25
	if testing.Short() {
		crashes = 6
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	b := mustOpen(t, "data", busy(fs, rng))
	b.compactions.begin()
	var stop atomic.Bool
	var appending sync.WaitGroup
	var shards []*history
	progress := make(chan struct{}, 1)
	for id := range storage.ShardID(3) {
		h := newHistory(t, b, id, seed, progress)
		shards = append(shards, h)
		appending.Go(func() {
			for !stop.Load() {
				if err := h.step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for crash := 0; crash < crashes && !t.Failed(); crash++ {
		for range rng.IntN(60) + 1 {
			<-progress
		}
		var acked []storage.Offset
		for _, h := range shards {
			acked = append(acked, h.acknowledged())
		}
		copied := ""
		if crash%4 == 3 {
			copied = fmt.Sprint("checkpoint", crash)
			if _, err := b.Checkpoint(copied); err != nil {
				t.Fatal(err)
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if copied != "" {
			if err := Restore(after, copied, "data"); err != nil {
				t.Fatal(err)
			}
		}
		verifyTwice(t, busy(after, rng), shards, acked)
	}
	stop.Store(true)
	appending.Wait()
	for _, h := range shards {
		h.await(h.log.End())
		logtest.ComesTo(t, h.log, h.recs)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyTwice opens a folder, cleans it and opens it again.
func verifyTwice(t *testing.T, opts Options, shards []*history, acked []storage.Offset) {
	t.Helper()
	for range 2 {
		b := mustOpen(t, "data", opts)
		for i, h := range shards {
			h.verify(t, b, acked[i])
			if err := b.shards[h.id].clean(opts.Now(), nil); err != nil {
				t.Fatal(err)
			}
			h.verify(t, b, acked[i])
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
