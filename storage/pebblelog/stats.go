package pebblelog

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are what a backend has done since it was opened, and how it stands.
type Stats struct {
	Flush  Histogram // seconds that a commit took to write and sync
	Append Histogram // seconds from a set's first record to when it was durable
	Batch  Histogram // bytes of a commit, of all shards

	Tail   int64 // bytes of log that the key table does not have yet, as Options.FoldBytes counts them
	Folds  Work
	Cleans Work

	Disk uint64 // bytes of the folder's files
}

// Work is what was done in the background.
type Work struct {
	Count int64
	Bytes int64 // that were folded in, or left after a cleaning
	Time  time.Duration
}

// Histogram counts values by size: Counts[i] are those up to Bounds[i] and above the
// bound before, the last those above all.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

var (
	secondsBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	bytesBounds   = []float64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
)

// counters are behind Stats.
type counters struct {
	flush, append, batch histogram
	folds, cleans        work
}

func (c *counters) init() {
	c.flush.bounds, c.append.bounds, c.batch.bounds = secondsBounds, secondsBounds, bytesBounds
}

type histogram struct {
	bounds []float64
	mu     sync.Mutex
	counts [16]uint64 // one more than bounds at most
	sum    float64
}

func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.mu.Lock()
	h.counts[i]++
	h.sum += v
	h.mu.Unlock()
}

func (h *histogram) snapshot() Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Histogram{Bounds: h.bounds, Counts: append([]uint64(nil), h.counts[:len(h.bounds)+1]...), Sum: h.sum}
}

type work struct{ count, bytes, nanos atomic.Int64 }

func (w *work) done(bytes int64, began time.Time) {
	w.count.Add(1)
	w.bytes.Add(bytes)
	w.nanos.Add(int64(time.Since(began)))
}

func (w *work) snapshot() Work {
	return Work{Count: w.count.Load(), Bytes: w.bytes.Load(), Time: time.Duration(w.nanos.Load())}
}

// Stats looks at the backend; after Close and after a failure, without the disk.
func (b *Backend) Stats() Stats {
	s := Stats{
		Flush: b.counts.flush.snapshot(), Append: b.counts.append.snapshot(), Batch: b.counts.batch.snapshot(),
		Tail: b.tails.Load(), Folds: b.counts.folds.snapshot(), Cleans: b.counts.cleans.snapshot(),
	}
	if b.failedWith() != nil || !b.enter() {
		return s
	}
	defer b.users.Done()
	s.Disk = b.db.Metrics().DiskSpaceUsage()
	return s
}
