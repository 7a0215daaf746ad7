package pebblelog

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// breakable is a file system of which writes or syncs of the WAL fail while err is set.
type breakable struct {
	*vfs.MemFS
	err   atomic.Pointer[error]
	kinds []errorfs.OpKind
}

func (b *breakable) fs() vfs.FS {
	return errorfs.Wrap(b.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if p := b.err.Load(); p != nil && slices.Contains(b.kinds, op.Kind) && strings.HasSuffix(op.Path, ".log") {
			return *p
		}
		return nil
	}))
}

// TestFailedSync lets Fatal return, as only a test does: the appended step is
// reported as failed and nothing is reported durable after it, on any shard.
func TestFailedSync(t *testing.T) {
	for name, kinds := range map[string][]errorfs.OpKind{
		"sync":  {errorfs.OpFileSync, errorfs.OpFileSyncData},
		"write": {errorfs.OpFileWrite},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &breakable{MemFS: vfs.NewCrashableMem(), kinds: kinds}
			opts := never(disk.fs())
			var fatals atomic.Int64
			opts.Fatal = func(error) { fatals.Add(1) }
			b := mustOpen(t, "data", opts)
			log, d := openShard(t, b, 0)
			other, od := openShard(t, b, 1)
			if err := log.Append([]storage.Record{body("e", "k", "acknowledged")}); err != nil {
				t.Fatal(err)
			}
			d.Wait(t, 1)

			cause := syscall.EIO
			failure := error(cause)
			disk.err.Store(&failure)
			log.Append([]storage.Record{body("e", "k", "doubtful")})
			if err := d.WaitError(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "data") {
				t.Errorf("the shard was told %v", err)
			}
			if err := od.WaitError(); !errors.Is(err, cause) {
				t.Errorf("the other shard was told %v", err)
			}
			// The disk recovers, which proves nothing: no more is accepted.
			disk.err.Store(nil)
			for _, l := range []storage.Log{log, other} {
				if err := l.Append([]storage.Record{body("e", "k", "late")}); !errors.Is(err, cause) {
					t.Errorf("append after the failure: %v", err)
				}
			}
			if _, err := b.Open(2, d.Call); !errors.Is(err, cause) {
				t.Errorf("open after the failure: %v", err)
			}
			after := disk.CrashClone(vfs.CrashCloneCfg{})
			if err := b.Close(); !errors.Is(err, cause) {
				t.Errorf("close: %v", err)
			}
			if n := fatals.Load(); n != 1 {
				t.Errorf("Fatal was called %d times", n)
			}
			if d.End() != 1 || od.Calls() != 1 {
				t.Errorf("durable up to %d; the other shard was told %d times", d.End(), od.Calls())
			}

			b = mustOpen(t, "data", never(after))
			defer b.Close()
			log, _ = openShard(t, b, 0)
			if log.End() != 1 {
				t.Errorf("after the restart the log ends at %d", log.End())
			}
		})
	}
}

// TestCorruptBatch damages a stored batch: opening says so and where.
func TestCorruptBatch(t *testing.T) {
	b := mustOpen(t, "data", never(vfs.NewMem()))
	log, d := openShard(t, b, 4)
	if err := log.Append([]storage.Record{body("e", "k", "v")}); err != nil {
		t.Fatal(err)
	}
	d.Wait(t, 1)
	key := logKey(nil, 4, 0)
	value, closer, err := b.db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), value...)
	closer.Close()
	bad[len(bad)-1] ^= 1
	if err := b.db.Set(key, bad, nil); err != nil {
		t.Fatal(err)
	}
	err = log.Load([]byte("e"), func(storage.Offset, storage.Record) error { return nil })
	if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "shard 4") || !strings.Contains(err.Error(), "offset 0") {
		t.Errorf("load: %v", err)
	}
	if err := log.Read(0, func(storage.Offset, storage.Record) error { return nil }); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	if err := b.Close(); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("close: %v", err)
	}
}

// TestHole takes a batch out of the tail, as the loss of one of pebble's files does, which
// pebble does not notice.
func TestHole(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := mustOpen(t, "data", never(fs))
	log, d := openShard(t, b, 4)
	for i := range storage.Offset(3) {
		if err := log.Append([]storage.Record{body("e", "k", "v")}); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, i+1)
	}
	if err := b.db.Delete(logKey(nil, 4, 1), nil); err != nil {
		t.Fatal(err)
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	b.Close()
	again := mustOpen(t, "data", never(after))
	defer again.Close()
	_, err := again.Open(4, func(storage.Offset, error) {})
	if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "shard 4") || !strings.Contains(err.Error(), "at offset 2 after 1") {
		t.Errorf("opened with a hole: %v", err)
	}
}

func TestShardIDs(t *testing.T) {
	b := mustOpen(t, "data", never(vfs.NewMem()))
	defer b.Close()
	for _, id := range []storage.ShardID{-1, 1 << 16} {
		if _, err := b.Open(id, func(storage.Offset, error) {}); err == nil {
			t.Errorf("shard %d was opened", id)
		}
	}
	if _, err := b.Open(1<<16-1, logtest.NewDurable(-1).Call); err != nil {
		t.Error(err)
	}
}
