package pebblelog

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// benchShard stands for the runner: one Log, many clients that wait for their ends.
type benchShard struct {
	mu      sync.Mutex // the runner's single goroutine
	log     storage.Log
	waiting []benchWait
}

type benchWait struct {
	end  storage.Offset
	wake chan struct{}
}

func (s *benchShard) durable(end storage.Offset, err error) {
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	n := 0
	for n < len(s.waiting) && s.waiting[n].end <= end {
		s.waiting[n].wake <- struct{}{}
		n++
	}
	s.waiting = append(s.waiting[:0], s.waiting[n:]...)
	s.mu.Unlock()
}

// BenchmarkCommit has 64 clients over 50 shards, each with one step of ten
// records of about 100 bytes under way. An op is a step.
func BenchmarkCommit(b *testing.B) {
	for _, distinct := range []int{10, 2000} {
		b.Run(fmt.Sprintf("keys=%d", distinct), func(b *testing.B) { benchCommit(b, distinct) })
	}
}

func benchCommit(b *testing.B, distinct int) {
	const clients, shards = 64, 50
	backend := mustOpen(b, benchDir(b), Options{})
	defer backend.Close()
	var logs [shards]*benchShard
	for i := range logs {
		logs[i] = &benchShard{}
		log, err := backend.Open(storage.ShardID(i), logs[i].durable)
		if err != nil {
			b.Fatal(err)
		}
		logs[i].log = log
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	before := backend.db.Metrics().WAL.BytesWritten
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() { benchClient(logs[c%shards], c, distinct, &left) })
	}
	wg.Wait()
	b.StopTimer()
	commits := float64(backend.commitCount.Load())
	secs := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/secs, "steps/s")
	b.ReportMetric(commits/secs, "commits/s")
	b.ReportMetric(float64(backend.db.Metrics().WAL.BytesWritten-before)/float64(b.N), "walB/op")
}

func benchClient(s *benchShard, c, distinct int, left *atomic.Int64) {
	recs := make([]storage.Record, 10)
	keys := make([][]byte, distinct)
	for i := range keys {
		keys[i] = logtest.Key(storage.Body, fmt.Sprintf("group-%d", c), fmt.Sprintf("topic-name-%06d", i))
	}
	value := make([]byte, 64)
	wake := make(chan struct{}, 1)
	now := time.Now()
	for i := 0; left.Add(-1) >= 0; i++ {
		for j := range recs {
			recs[j] = storage.Record{Key: keys[(i*10+j)%distinct], Value: value, Time: now}
		}
		s.mu.Lock()
		if err := s.log.Append(recs); err != nil {
			panic(err)
		}
		s.waiting = append(s.waiting, benchWait{s.log.End(), wake})
		s.mu.Unlock()
		<-wake
	}
}

// BenchmarkTransactions has 64 producers over 50 shards, each with a transaction of
// one record: it appends the record, waits, appends the control record and waits. An op is a transaction.
func BenchmarkTransactions(b *testing.B) {
	const producers, shards = 64, 50
	backend := mustOpen(b, benchDir(b), Options{})
	defer backend.Close()
	var logs [shards]*benchShard
	for i := range logs {
		logs[i] = &benchShard{}
		log, err := backend.Open(storage.ShardID(i), logs[i].durable)
		if err != nil {
			b.Fatal(err)
		}
		logs[i].log = log
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() { benchProducer(logs[p%shards], int64(p), &left) })
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transactions/s")
}

func benchProducer(s *benchShard, p int64, left *atomic.Int64) {
	wake := make(chan struct{}, 1)
	step := func(r storage.Record) {
		s.mu.Lock()
		if err := s.log.Append([]storage.Record{r}); err != nil {
			panic(err)
		}
		s.waiting = append(s.waiting, benchWait{s.log.End(), wake})
		s.mu.Unlock()
		<-wake
	}
	pending := storage.Record{
		Key: logtest.Key(storage.Body, fmt.Sprintf("group-%d", p), "topic-name"), Value: make([]byte, 64), Time: time.Now(),
		Txn: storage.Txn{Producer: p, Kind: storage.Pending},
	}
	control := storage.Record{Time: time.Now(), Txn: storage.Txn{Producer: p, Kind: storage.Commit}}
	control.Key, control.Value = storage.AppendControl(nil, nil, storage.Commit, 0)
	for left.Add(-1) >= 0 {
		step(pending)
		step(control)
	}
}

// benchDir is a folder on the disk under the checkout: /tmp may be memory.
func benchDir(b testing.TB) string {
	dir, err := os.MkdirTemp(".", "bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkFsync is what this disk's sync costs, to measure the others by.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(benchDir(b) + "/file")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 30_000)
	for b.Loop() {
		if _, err := f.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdStart stores 10,000 entities of 100 keys each, in 50 shards, and
// measures Open of the backend, Open of all shards and Entities of each.
func BenchmarkColdStart(b *testing.B) {
	entities, keys := 10_000, 100
	if testing.Short() {
		entities = 1000
	}
	dir := benchDir(b)
	fillStore(b, dir, entities, keys)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			backend, logs := openAll(b, dir)
			n := 0
			for _, log := range logs {
				if err := log.Entities(func([]byte, []storage.Located, bool) error { n++; return nil }); err != nil {
					b.Fatal(err)
				}
			}
			if n != entities {
				b.Fatalf("%d entities of %d", n, entities)
			}
			b.StopTimer()
			backend.Close()
			b.StartTimer()
		}
	})
	b.Run("load", func(b *testing.B) {
		backend, logs := openAll(b, dir)
		defer backend.Close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e := i * 7919 % entities
			n := 0
			if err := logs[e%50].Load([]byte(entityName(e)), func(storage.Offset, storage.Record) error { n++; return nil }); err != nil {
				b.Fatal(err)
			}
			if n != keys+1 {
				b.Fatalf("%d records of %d", n, keys+1)
			}
		}
	})
}

func entityName(e int) string { return fmt.Sprintf("group-%05d", e) }

func openAll(b *testing.B, dir string) (*Backend, []storage.Log) {
	backend := mustOpen(b, dir, Options{})
	var logs []storage.Log
	for i := range 50 {
		log, err := backend.Open(storage.ShardID(i), func(storage.Offset, error) {})
		if err != nil {
			b.Fatal(err)
		}
		logs = append(logs, log)
	}
	return backend, logs
}

func fillStore(b *testing.B, dir string, entities, keys int) {
	backend, logs := openAll(b, dir)
	value := make([]byte, 64)
	var recs []storage.Record
	for e := range entities {
		recs = append(recs[:0], storage.Record{Key: logtest.Key(storage.Header, entityName(e), ""), Value: value})
		for k := range keys {
			recs = append(recs, storage.Record{Key: logtest.Key(storage.Body, entityName(e), fmt.Sprintf("topic-name-%04d", k)), Value: value})
		}
		if err := logs[e%50].Append(recs); err != nil {
			b.Fatal(err)
		}
		if e%100 == 99 { // bound the memory
			log, err := backend.Open(storage.ShardID(e%50), func(storage.Offset, error) {})
			if err != nil {
				b.Fatal(err)
			}
			logs[e%50] = log
		}
	}
	if err := backend.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCrashStart opens a folder as a crash under load leaves it, with
// tails as long as they get: replaying pebble's WAL and folding come on top.
func BenchmarkCrashStart(b *testing.B) {
	dir := benchDir(b)
	fillStore(b, dir, 1000, 100)
	backend, logs := openAll(b, dir)
	value := make([]byte, 64)
	recs := make([]storage.Record, 10)
	for i := 0; backend.tails.Load() < backend.opts.FoldTotalBytes*3/4; i++ {
		for j := range recs {
			recs[j] = storage.Record{Key: logtest.Key(storage.Body, entityName(i%1000), fmt.Sprintf("topic-name-%04d", (i+j)%100)), Value: value}
		}
		if err := logs[i%50].Append(recs); err != nil {
			b.Fatal(err)
		}
		if i%500 == 499 { // what is appended counts when it is durable
			for id := range logs {
				logs[id] = reopened(b, backend, storage.ShardID(id))
			}
		}
	}
	crashed := benchDir(b) + "/crashed"
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil { // nothing is under way: as good as a crash
		b.Fatal(err)
	}
	tails := backend.tails.Load()
	backend.Close()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		again := fmt.Sprintf("%s-%d", crashed, i)
		if err := os.CopyFS(again, os.DirFS(crashed)); err != nil {
			b.Fatal(err)
		}
		syscall.Sync() // the copy's bytes are not the start's to write
		b.StartTimer()
		began := time.Now()
		backend := mustOpen(b, again, Options{})
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-backend")
		for id := range logs {
			reopened(b, backend, storage.ShardID(id))
		}
		b.StopTimer()
		backend.Close()
		os.RemoveAll(again)
		b.StartTimer()
	}
	b.ReportMetric(float64(tails)/(1<<20), "MiB-tail")
}

func reopened(b *testing.B, backend *Backend, id storage.ShardID) storage.Log {
	log, err := backend.Open(id, func(storage.Offset, error) {})
	if err != nil {
		b.Fatal(err)
	}
	return log
}
