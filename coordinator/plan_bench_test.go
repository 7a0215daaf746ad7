package coordinator

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/pebblelog"
)

// benchOffsets is how many offsets the benchmarks store, in groups of benchGroup.
const (
	benchOffsets = 1_000_000
	benchGroup   = 1000
)

// offsetsOnDisk is a store of many offsets with topic ids.
func offsetsOnDisk(b *testing.B, n int) *pebblelog.Backend {
	b.Helper()
	store, err := pebblelog.Open(b.TempDir(), Index, pebblelog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	v := groupmeta.NewOffsetCommitValue()
	v.Offset, v.LeaderEpoch, v.CommitTimestamp, v.TopicID[0] = 1234567, 5, time.Now().UnixMilli(), 1
	value, err := v.AppendTo(nil, 4)
	if err != nil {
		b.Fatal(err)
	}
	byShard := map[storage.ShardID][]storage.Record{}
	for i := range n {
		k := groupmeta.OffsetCommitKey{Group: fmt.Sprintf("group-%05d", i/benchGroup), Topic: fmt.Sprintf("topic-%03d", i%benchGroup/100), Partition: int32(i % 100)}
		key, err := k.AppendTo(nil)
		if err != nil {
			b.Fatal(err)
		}
		id := ShardOf(k.Group, testShards)
		byShard[id] = append(byShard[id], storage.Record{Key: key, Value: value, Time: time.Now()})
	}
	for id, recs := range byShard {
		for part := range slices.Chunk(recs, 10_000) {
			appendAll(b, store, id, part)
		}
	}
	return store
}

// BenchmarkPlan plans over a million stored offsets that all lose something.
func BenchmarkPlan(b *testing.B) {
	store := offsetsOnDisk(b, benchOffsets)
	n := nodeOver(b, store, nil)
	defer n.Close()
	to, err := metadataversion.ParseTarget("3.3.2")
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	var before, most runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak uint64
	for b.Loop() {
		plan, err := n.PlanDowngrade(b.Context(), to, func(p Progress) {
			if p.Records%(64*4096) == 0 {
				runtime.ReadMemStats(&most)
				peak = max(peak, most.HeapInuse)
			}
		})
		if err != nil || plan.Records != benchOffsets || plan.Losses[0].Records != benchOffsets {
			b.Fatalf("%v, %v", plan, err)
		}
	}
	b.ReportMetric(float64(peak)/1e6, "MB-heap")
	b.ReportMetric(float64(before.HeapInuse)/1e6, "MB-heap-before")
}

// BenchmarkRequestsDuringRewrite measures commits with and without a forced rewrite beside them.
func BenchmarkRequestsDuringRewrite(b *testing.B) {
	rest = usually
	defer func() { rest = 0 }()
	for b.Loop() {
		store := offsetsOnDisk(b, benchOffsets/5)
		n := nodeOver(b, store, store.Checkpoint)
		to, err := metadataversion.ParseTarget("3.3.2")
		if err != nil {
			b.Fatal(err)
		}
		usual := commitsUntil(b, n, func() { time.Sleep(3 * time.Second) }) // a benchmark's span
		var took time.Duration
		during := commitsUntil(b, n, func() {
			began := time.Now()
			if _, err := n.Change(b.Context(), Change{To: to, Force: true}); err != nil {
				b.Error(err)
			}
			if err := n.AwaitRewrite(b.Context()); err != nil {
				b.Error(err)
			}
			took = time.Since(began)
		})
		b.ReportMetric(float64(usual.Microseconds())/1000, "ms-p99-usual")
		b.ReportMetric(float64(during.Microseconds())/1000, "ms-p99-rewrite")
		b.ReportMetric(took.Seconds(), "s-rewrite")
		n.Close()
	}
}

// commitsUntil has 16 clients commit while span runs, and returns the 99th percentile.
func commitsUntil(b *testing.B, n *Node, span func()) time.Duration {
	var stop atomic.Bool
	var clients sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	for c := range 16 {
		clients.Go(func() {
			var mine []time.Duration
			for i := 0; !stop.Load(); i++ {
				began := time.Now()
				ch := make(chan error, 1)
				n.Group(commit(fmt.Sprintf("client-%d", c), "t", int64(i)), func(r group.Response, err error) {
					if err == nil && r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode != 0 {
						err = fmt.Errorf("%+v", r)
					}
					ch <- err
				})
				if err := <-ch; err != nil {
					b.Error(err)
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	span()
	stop.Store(true)
	clients.Wait()
	slices.Sort(all)
	return all[len(all)*99/100]
}
