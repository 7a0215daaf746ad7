package memlog

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLog(t *testing.T) {
	logtest.Run(t, func(t logtest.TB) *logtest.Store { return store(t, New(logtest.Index)) })
}

func store(t logtest.TB, b *Backend) *logtest.Store {
	t.Cleanup(func() { b.Close() })
	return &logtest.Store{
		Backend: b,
		Clean:   func(id storage.ShardID, now time.Time) { b.Clean(id, now.Add(-logtest.Retention)) },
		Crash:   func() *logtest.Store { return store(t, b.Crash()) },
	}
}

func one(value string) []storage.Record {
	return []storage.Record{{Key: logtest.Key(storage.Body, "e", "k"), Value: []byte(value)}}
}

// must opens a shard and collects what its callback is told.
func must(t *testing.T, b *Backend) (storage.Log, *[]any) {
	var told []any
	log, err := b.Open(0, func(end storage.Offset, err error) {
		if err != nil {
			told = append(told, err)
		} else {
			told = append(told, end)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return log, &told
}

func appendOne(t *testing.T, log storage.Log) {
	t.Helper()
	if err := log.Append(one("v")); err != nil {
		t.Fatal(err)
	}
}

func TestManualSync(t *testing.T) {
	b := NewManual(logtest.Index)
	log, told := must(t, b)
	appendOne(t, log)
	appendOne(t, log)
	if len(*told) != 0 || b.Pending() != 2 {
		t.Fatalf("told %v before Sync", *told)
	}
	b.Sync()
	if len(*told) != 2 || (*told)[1] != storage.Offset(2) {
		t.Fatalf("told %v", *told)
	}
}

func TestHoldAndRelease(t *testing.T) {
	b := NewManual(logtest.Index)
	log, told := must(t, b)
	b.Hold()
	for range 3 {
		appendOne(t, log)
	}
	b.Sync()
	if len(*told) != 0 {
		t.Fatalf("told %v while held", *told)
	}
	b.Release(2)
	b.Sync()
	if len(*told) != 2 {
		t.Fatalf("told %v after two were released", *told)
	}
	b.Release(-1)
	b.Sync()
	if len(*told) != 3 {
		t.Fatalf("told %v after the hold's end", *told)
	}
}

func TestFailNext(t *testing.T) {
	for _, written := range []bool{false, true} {
		b := NewManual(logtest.Index)
		log, told := must(t, b)
		appendOne(t, log)
		b.Sync()
		cause := errors.New("lost the disk")
		b.FailNext(cause, written)
		appendOne(t, log)
		appendOne(t, log) // goes down with the one before
		b.Sync()
		if len(*told) != 2 || (*told)[1] != any(cause) {
			t.Fatalf("told %v", *told)
		}
		if err := log.Append(one("v")); !errors.Is(err, cause) {
			t.Fatalf("append after the failure: %v", err)
		}
		log, _ = must(t, b)
		want := storage.Offset(1)
		if written {
			want = 2
		}
		if log.End() != want {
			t.Fatalf("written %v: reopened at %d", written, log.End())
		}
		appendOne(t, log)
		b.Sync()
	}
}

// TestFailedThenReopened reopens before the failure was delivered.
func TestFailedThenReopened(t *testing.T) {
	b := NewManual(logtest.Index)
	log, told := must(t, b)
	b.FailNext(errors.New("lost the disk"), false)
	appendOne(t, log)
	appendOne(t, log)
	log, _ = must(t, b)
	if log.End() != 0 || len(*told) != 0 {
		t.Fatalf("reopened at %d, told %v", log.End(), *told)
	}
}

func TestCrashDropsWhatIsHeld(t *testing.T) {
	b := NewManual(logtest.Index)
	log, told := must(t, b)
	appendOne(t, log)
	b.Sync()
	b.Hold()
	appendOne(t, log)
	after := b.Crash()
	b.Release(-1)
	b.Sync()
	if len(*told) != 1 {
		t.Fatalf("told %v", *told)
	}
	if err := log.Append(one("v")); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("append after the crash: %v", err)
	}
	log, _ = must(t, after)
	if log.End() != 1 {
		t.Fatalf("restarted at %d", log.End())
	}
}
