package pebblelog

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// TestCheckpoint: it opens as what the store was, whatever becomes of that.
func TestCheckpoint(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := mustOpen(t, "data", small(fs))
	log, d := openShard(t, b, 1)
	for i := range 50 {
		d.Append(t, log, stepRecords(i))
	}
	d.Wait(t, log.End())
	if err := b.shards[1].fold(); err != nil { // which takes out what is superseded
		t.Fatal(err)
	}
	before := recordsOf(t, log)
	size, err := b.Checkpoint("checkpoints/one")
	if err != nil || size < 1000 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if _, err := b.Checkpoint("checkpoints/one"); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another one: %v", err)
	}
	for i := range 50 {
		d.Append(t, log, stepRecords(50+i))
	}
	d.Wait(t, log.End())
	if err := b.Purge(1, func([]byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	restored := mustOpen(t, "checkpoints/one", small(crashed))
	log, _ = openShard(t, restored, 1)
	if after := recordsOf(t, log); !reflect.DeepEqual(before, after) {
		t.Errorf("%d records became %d", len(before), len(after))
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
}

func recordsOf(t *testing.T, log storage.Log) (lines []string) {
	t.Helper()
	err := log.Read(0, func(at storage.Offset, r storage.Record) error {
		lines = append(lines, fmt.Sprintf("%d %x=%x %v %v", at, r.Key, r.Value, r.Time, r.Txn))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
