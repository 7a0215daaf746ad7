package pebblelog

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// set is what the committer has taken from a shard for one commit.
type set struct {
	shard *shard
	log   *Log
	batch *recordlog.Builder
	full  []*recordlog.Builder
	parts []*tailBatch // full's and batch's
	end   storage.Offset
	began time.Time // its first record was appended
}

// note is an end that a Log has yet to be told.
type note struct {
	log *Log
	end storage.Offset
}

// commitLoop takes the sets of all shards, writes and syncs them together, and
// hands what is durable to the notifier. What is appended meanwhile is the next
// commit's: the busier the disk, the larger the sets.
//
// It owns the pebble batch and the slices, and reuses them.
func (b *Backend) commitLoop() {
	batch := b.db.NewBatch(pebble.WithInitialSizeBytes(64<<10), pebble.WithMaxRetainedSizeBytes(4<<20))
	defer batch.Close()
	var squeezed []byte
	var shards []*shard
	var sets []set
	for {
		b.committer.await()
		// Whoever is ready to append gets to do it first: not a wait, since nobody
		// is waited for, but worth several times the steps in a commit.
		runtime.Gosched()
		var ok bool
		if shards, ok = b.committer.take(shards); !ok {
			return
		}
		sets = sets[:0]
		for i, s := range shards {
			sets = append(sets, s.takeSet())
			shards[i] = nil
		}
		for i := range sets {
			squeezed = sets[i].put(batch, squeezed)
		}
		size, began := batch.Len(), time.Now()
		if err := b.write(batch, true); err != nil {
			b.fail(fmt.Errorf("commit: %w", err))
			return
		}
		now := time.Now()
		b.counts.flush.observe(now.Sub(began).Seconds())
		b.counts.batch.observe(float64(size))
		batch.Reset()
		b.commitCount.Add(1)
		for i := range sets {
			b.counts.append.observe(now.Sub(sets[i].began).Seconds())
			b.committed(&sets[i])
			sets[i] = set{}
		}
		if b.tails.Load() > maxTails*b.opts.FoldTotalBytes {
			b.foldLongest() // the folder falls behind: slow down to its speed
		}
	}
}

// maxTails is how far the tails may grow beyond Options.FoldTotalBytes before
// commits wait for the folding.
const maxTails = 4

// takeSet takes the shard's set and leaves an empty one.
func (s *shard) takeSet() set {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.unfolded.batches
	t := set{
		shard: s, log: s.setLog, batch: s.set, full: s.full, parts: all[len(all)-len(s.full)-1:], end: s.end, began: s.setBegan,
	}
	s.set, s.spare, s.full = s.spare, nil, nil
	s.set.Reset(int64(s.end), storage.Txn{})
	s.dirty = false
	return t
}

// put adds the set to a commit. It returns scratch, or what it has become, to be used again.
func (t *set) put(batch *pebble.Batch, scratch []byte) []byte {
	for i, f := range t.full {
		scratch = t.putOne(batch, f, t.parts[i], scratch)
	}
	return t.putOne(batch, t.batch, t.parts[len(t.full)], scratch)
}

func (t *set) putOne(batch *pebble.Batch, b *recordlog.Builder, part *tailBatch, scratch []byte) []byte {
	data := b.Squeeze(scratch[:0])
	op := batch.SetDeferred(logKeySize, len(data))
	logKey(op.Key[:0], t.shard.id, storage.Offset(b.Base()))
	copy(op.Value, data)
	if err := op.Finish(); err != nil {
		panic(fmt.Sprintf("pebblelog: shard %d offset %d: %v", t.shard.id, b.Base(), err)) // only an indexed batch fails
	}
	t.shard.mu.Lock()
	defer t.shard.mu.Unlock()
	part.records, part.size, part.stored = int32(b.Count()), int32(b.Len()), int32(len(data))
	t.shard.weigh(part.weight())
	return data
}

// committed publishes that a set is durable.
func (b *Backend) committed(t *set) {
	s := t.shard
	s.durable.Store(int64(t.end))
	if t.batch.Cap() > keptSet && t.batch.Len() < keptSet/4 {
		t.batch = new(recordlog.Builder) // it was a burst's
	}
	for _, f := range t.full {
		if f.Cap() <= keptSet {
			b.builders.Put(f)
		}
	}
	s.mu.Lock()
	s.spare = t.batch
	s.mu.Unlock()
	b.notifier.add(note{t.log, t.end})
	if s.tail.Load() >= b.opts.FoldBytes || b.tails.Load() >= b.opts.FoldTotalBytes {
		b.wantFold(s)
	}
}

// notifyLoop tells the Logs what is durable, while the next commit is under way.
// After a failure it tells all of them that, once, and nothing else.
func (b *Backend) notifyLoop() {
	var notes []note
	for {
		var ok bool
		if notes, ok = b.notifier.take(notes); !ok {
			break
		}
		for i, n := range notes {
			notes[i] = note{}
			if b.failedWith() == nil {
				b.tell(n)
			}
		}
	}
	if err := b.failedWith(); err != nil {
		b.tellFailure(err)
	}
}

// tell calls one Log's durable. The Log is not fenced: fence waits for this.
func (b *Backend) tell(n note) {
	n.log.durable(n.end, nil)
	s := n.log.shard
	s.mu.Lock()
	s.delivered = n.end
	s.told.Broadcast()
	s.mu.Unlock()
}

func (b *Backend) tellFailure(err error) {
	for _, s := range b.allShards() {
		s.mu.Lock()
		log := s.log
		s.mu.Unlock()
		if log != nil {
			log.durable(0, err)
		}
	}
}
