package pebblelog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// TestOpenCompactsNothing: what is to be compacted when a folder is opened, after a crash
// above all, waits until compactions are begun.
func TestOpenCompactsNothing(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := never(fs)
	opts.MemTableBytes = 4 << 20 // flushed on demand alone
	b := mustOpen(t, "data", opts)
	b.rested.Stop()
	log, d := openShard(t, b, 0)
	for i := range 8 { // as many levels in L0
		if err := log.Append(many(i)); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, log.End())
		if err := b.shards[0].fold(); err != nil {
			t.Fatal(err)
		}
		if err := b.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	opts.FS = after
	b = mustOpen(t, "data", opts)
	defer b.Close()
	b.rested.Stop()
	if m := b.db.Metrics(); m.Levels[0].Sublevels < 8 || m.Compact.Count+m.Compact.NumInProgress > 0 {
		t.Fatalf("%d levels in L0, %d compactions and %d under way: they were to rest", m.Levels[0].Sublevels, m.Compact.Count, m.Compact.NumInProgress)
	}
	done := make(chan error, 1)
	go func() { done <- b.db.Compact(t.Context(), []byte{spaceKeys}, []byte{spaceLog + 1}, false) }()
	b.compactions.begin()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m := b.db.Metrics(); m.Levels[0].Sublevels > 0 {
		t.Fatalf("%d levels in L0 after a compaction", m.Levels[0].Sublevels)
	}
}

// TestNoRestWithMuchToDo: whoever ends within the rest, time and again, would never compact.
func TestNoRestWithMuchToDo(t *testing.T) {
	b := mustOpen(t, "data", never(vfs.NewMem()))
	defer b.Close()
	b.rested.Stop()
	log, d := openShard(t, b, 0)
	for levels := range int32(stopWrites / 2) {
		if rest := b.rest(); rest != compactionRest {
			t.Fatalf("a rest of %v with %d levels in L0", rest, levels)
		}
		if err := log.Append(many(int(levels))); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, log.End())
		if err := b.db.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := b.shards[0].fold(); err != nil {
			t.Fatal(err)
		}
	}
	if rest := b.rest(); rest != 0 {
		t.Fatalf("a rest of %v with half of the levels that stop writes", rest)
	}
}

// many are records that a fold leaves one live batch of.
func many(i int) (recs []storage.Record) {
	for k := range 10 {
		recs = append(recs, body("e", fmt.Sprint(k), fmt.Sprint(i)))
	}
	return recs
}

// TestStalledWritesBeginCompactions: writes would wait as long as compactions rest.
func TestStalledWritesBeginCompactions(t *testing.T) {
	opts := small(vfs.NewMem())
	b := mustOpen(t, "data", opts)
	defer b.Close()
	b.rested.Stop()
	log, d := openShard(t, b, 0)
	value := string(bytes.Repeat([]byte("incompressible? not at all: "), 4000))
	for i := range 100 { // some forty memtables
		if err := log.Append([]storage.Record{body("e", fmt.Sprint(i), value)}); err != nil {
			t.Fatal(err)
		}
		d.Wait(t, log.End())
		if err := b.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if m := b.db.Metrics(); m.Compact.Count+m.Compact.NumInProgress == 0 {
		t.Fatalf("%d levels in L0, and nothing was compacted", m.Levels[0].Sublevels)
	}
}

// waitingDB has a compaction that waits from the first time on that nothing may run.
type waitingDB struct {
	c         *compactions
	asked     int
	scheduled int
}

func (*waitingDB) GetAllowedWithoutPermission() int { return 1 }

// GetWaitingCompaction has nothing at first, and something right after it has said so.
func (d *waitingDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	if d.asked++; d.asked > 1 {
		return true, pebble.WaitingCompaction{}
	}
	if may, _ := d.c.TrySchedule(); may {
		panic("two at once")
	}
	return false, pebble.WaitingCompaction{}
}

func (d *waitingDB) Schedule(pebble.CompactionGrantHandle) bool { d.scheduled++; return true }

// TestRefusedCompactionIsAskedFor: who is refused while another is asked in vain does
// not come again.
func TestRefusedCompactionIsAskedFor(t *testing.T) {
	var c compactions
	d := &waitingDB{c: &c}
	c.Register(1, d)
	c.begin()
	if d.asked != 2 || d.scheduled != 1 {
		t.Fatalf("asked %d times, scheduled %d", d.asked, d.scheduled)
	}
	c.Unregister()
	c.Done()
	if d.scheduled != 1 {
		t.Fatal("scheduled on a database that is closed")
	}
}
