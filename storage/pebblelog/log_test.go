package pebblelog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// small are options under which a few hundred bytes fold, and nothing cleans by itself.
func small(fs vfs.FS) Options {
	return Options{
		FS: fs, FoldBytes: 700, FoldTotalBytes: 1500, CleanBytes: 1 << 40,
		TombstoneRetention: logtest.Retention, CacheBytes: 1 << 20, MemTableBytes: 256 << 10,
		Fatal: func(err error) { panic(err) }, Logf: setOnce,
	}
}

// setOnce panics when pebble meets a SingleDelete of what was set twice.
func setOnce(format string, args ...any) {
	if said := fmt.Sprintf(format, args...); strings.Contains(said, pebble.NondeterministicSingleDelete.String()) {
		panic(said)
	}
}

// never are options under which the tail is folded only on demand.
func never(fs vfs.FS) Options {
	o := small(fs)
	o.FoldBytes, o.FoldTotalBytes = 1<<40, 1<<40
	return o
}

func TestLog(t *testing.T) {
	for name, opts := range map[string]func(vfs.FS) Options{"folding": small, "tail": never} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(0)
			logtest.Run(t, func(t logtest.TB) *logtest.Store {
				seed++
				return newStore(t, vfs.NewCrashableMem(), opts, rand.New(rand.NewPCG(seed, 0)))
			})
		})
	}
}

func newStore(t logtest.TB, fs *vfs.MemFS, opts func(vfs.FS) Options, rng *rand.Rand) *logtest.Store {
	t.Helper()
	b, err := Open("data", logtest.Index, opts(fs))
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	t.Cleanup(stop)
	shard := func(id storage.ShardID) *shard {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.shards[id]
	}
	fold := func(id storage.ShardID) {
		if err := shard(id).fold(); err != nil {
			t.Fatalf("fold: %v", err)
		}
	}
	return &logtest.Store{
		Backend: b,
		Fold:    fold,
		Clean: func(id storage.ShardID, now time.Time) {
			fold(id)
			if err := shard(id).clean(now, nil); err != nil {
				t.Fatalf("clean: %v", err)
			}
		},
		Reopen: func() *logtest.Store {
			stop()
			return newStore(t, fs, opts, rng)
		},
		Crash: func() *logtest.Store {
			after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			stop()
			return newStore(t, after, opts, rng)
		},
	}
}

func mustOpen(t testing.TB, dir string, opts Options) *Backend {
	t.Helper()
	b, err := Open(dir, logtest.Index, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openShard(t testing.TB, b *Backend, id storage.ShardID) (storage.Log, *logtest.Durable) {
	t.Helper()
	d := logtest.NewDurable(-1)
	log, err := b.Open(id, d.Call)
	if err != nil {
		t.Fatal(err)
	}
	return log, d
}

func body(entity, key, value string) storage.Record {
	return storage.Record{Key: logtest.Key(storage.Body, entity, key), Value: []byte(value), Time: time.UnixMilli(1e12)}
}

// TestFoldsAndCleansByItself writes the same keys until folding and cleaning
// have set in on their own, and looks that the view stays right.
func TestFoldsAndCleansByItself(t *testing.T) {
	opts := small(vfs.NewMem())
	opts.CleanBytes = 4 << 10
	b := mustOpen(t, "data", opts)
	defer b.Close()
	log, d := openShard(t, b, 0)
	s := b.shards[0]
	written := int64(0)
	for i := 0; ; i++ {
		if err := log.Append([]storage.Record{body("e", fmt.Sprint(i%10), fmt.Sprint(i)), body("f", "k", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, log.End())
		s.folding.Lock()
		now := s.meta.written
		s.folding.Unlock()
		if now < written {
			break // a cleaning has been
		}
		written = now
	}
	n := 0
	if err := log.Read(0, func(storage.Offset, storage.Record) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	if n >= int(log.End()) {
		t.Fatalf("%d of %d records are left", n, log.End())
	}
	keys := 0
	if err := log.Load([]byte("e"), func(off storage.Offset, r storage.Record) error {
		keys++
		if off < log.End()-20 {
			return fmt.Errorf("key %q is at offset %d of %d", r.Key, off, log.End())
		}
		return nil
	}); err != nil || keys != 10 {
		t.Fatalf("%d keys, %v", keys, err)
	}
}

// TestFoldTakesOutWhatIsSuperseded: of batches that one fold meets, those stay of which
// something is live.
func TestFoldTakesOutWhatIsSuperseded(t *testing.T) {
	b := mustOpen(t, "data", never(vfs.NewMem()))
	defer b.Close()
	log, d := openShard(t, b, 0)
	dead := body("e", "c", "")
	dead.Value = nil
	pending := body("e", "d", "pending")
	pending.Txn = storage.Txn{Producer: 7, Kind: storage.Pending}
	for _, recs := range [][]storage.Record{
		{body("e", "a", "0"), body("e", "b", "0")},
		{body("e", "a", "1"), body("e", "c", "1")}, // goes
		{dead, body("e", "a", "2")},
		{pending},
		{body("e", "d", "1")}, // goes
		{body("e", "d", "2"), body("e", "a", "3")},
	} {
		if err := log.Append(recs); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, log.End())
	}
	read := func() (offsets []storage.Offset) {
		if err := log.Read(0, func(o storage.Offset, _ storage.Record) error { offsets = append(offsets, o); return nil }); err != nil {
			t.Fatal(err)
		}
		return offsets
	}
	if got := fmt.Sprint(read()); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Fatalf("before the fold %s", got)
	}
	s := b.shards[0]
	if err := s.fold(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(read()); got != "[0 1 4 5 6 8 9]" {
		t.Fatalf("after the fold %s", got)
	}
	if err := b.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.clean(time.UnixMilli(1e12), nil); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(read()); got != "[1 4 6 8 9]" {
		t.Fatalf("after the cleaning %s", got)
	}
}

// TestRefile opens with an Index that knows more.
func TestRefile(t *testing.T) {
	opts := small(vfs.NewMem())
	blind := func(storage.ShardID, []byte) ([]byte, storage.Class) { return nil, storage.Orphan }
	b, err := Open("data", blind, opts)
	if err != nil {
		t.Fatal(err)
	}
	log, d := openShard(t, b, 0)
	if err := log.Append([]storage.Record{body("e", "k", "v"), body("f", "k", "v"), body("g", "k", "v")}); err != nil {
		t.Fatal(err)
	}
	d.Wait(t, 3)
	dead := body("g", "k", "")
	dead.Value = nil
	pending := body("h", "k", "v")
	pending.Txn = storage.Txn{Producer: 7, Kind: storage.Pending}
	if err := log.Append([]storage.Record{dead, pending}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	opts.IndexVersion = 1
	b = mustOpen(t, "data", opts)
	defer b.Close()
	log, _ = openShard(t, b, 0)
	var names []string
	if err := log.Entities(func(e []byte, _ []storage.Located, pending bool) error {
		names = append(names, fmt.Sprint(string(e), pending))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(names) != "[efalse ffalse htrue]" {
		t.Fatalf("entities %v", names)
	}
}

// TestLargeSteps has steps beyond the size of a batch and of pebble's memtable.
func TestLargeSteps(t *testing.T) {
	fs := vfs.NewMem()
	b := mustOpen(t, "data", small(fs))
	log, d := openShard(t, b, 0)
	big := string(make([]byte, 100_000))
	for step := range 5 {
		var recs []storage.Record
		for i := range 5 + 10*step {
			recs = append(recs, body("e", fmt.Sprint(step, i), big))
		}
		if err := log.Append(recs); err != nil {
			t.Fatal(err)
		}
	}
	d.Wait(t, log.End())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = mustOpen(t, "data", small(fs))
	defer b.Close()
	log, _ = openShard(t, b, 0)
	n := storage.Offset(0)
	if err := log.Read(0, func(off storage.Offset, r storage.Record) error {
		if off != n || len(r.Value) != len(big) {
			return fmt.Errorf("offset %d where %d is expected, with %d bytes", off, n, len(r.Value))
		}
		n++
		return nil
	}); err != nil || n != 125 {
		t.Fatalf("%d records: %v", n, err)
	}
}

// TestAllocations: what is allocated on the way of a step to the disk does not
// grow with its records. (Folding, which is apart, allocates by entity.)
func TestAllocations(t *testing.T) {
	b := mustOpen(t, "data", never(vfs.NewMem()))
	defer b.Close()
	told := make(chan struct{}, 1)
	end := storage.Offset(0)
	log, err := b.Open(0, func(e storage.Offset, err error) {
		if e == end {
			told <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	recs := make([]storage.Record, 100)
	for i := range recs {
		recs[i] = body("entity", fmt.Sprint(i), "some value that is of a usual length")
	}
	step := func() {
		end += storage.Offset(len(recs))
		if err := log.Append(recs); err != nil {
			t.Fatal(err)
		}
		<-told
	}
	for range 10 {
		step() // buffers grow
	}
	if n := testing.AllocsPerRun(50, step); n > 20 {
		t.Errorf("a step of %d records allocates %v times", len(recs), n)
	} else {
		t.Logf("a step of %d records allocates %v times", len(recs), n)
	}
}
