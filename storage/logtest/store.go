package logtest

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

// Retention is how long a cleaned log keeps its tombstones.
const Retention = 24 * time.Hour

// TB is what *testing.T and *rapid.T have in common.
type TB interface {
	rapid.TB
	Cleanup(func())
}

// Store is a backend under test, with what a test can do to it beyond the interface.
type Store struct {
	storage.Backend
	// Fold brings the shard's key table up to date, where there is one; nil if not.
	Fold func(storage.ShardID)
	// Clean compacts the shard's durable log, as if it was the time given: what is
	// left is the latest record of each key, without tombstones older than
	// Retention, what is pending, and the control records that the latest count by. A
	// crash may undo it.
	Clean func(shard storage.ShardID, now time.Time)
	// Reopen closes the backend and opens it again on the same data; nil if what
	// it holds ends with it.
	Reopen func() *Store
	// Crash stops the backend without closing it, drops what was not durable, or
	// part of it, and starts again on what is left.
	Crash func() *Store
}

// Factory makes an empty store, which files keys by Index. It closes what it
// made by t.Cleanup. Cleaning must run only when Clean is called.
type Factory func(t TB) *Store

// OtherShards are filed otherwise: all their keys are orphans.
const OtherShards storage.ShardID = 0x4000

// Index files the keys that Key makes.
func Index(shard storage.ShardID, key []byte) (entity []byte, class storage.Class) {
	if shard >= OtherShards || len(key) < 2 || key[0] > byte(storage.Orphan) || len(key) < 2+int(key[1]) {
		return nil, storage.Orphan
	}
	return key[2 : 2+int(key[1])], storage.Class(key[0])
}

// Key makes the key of an entity's record.
func Key(class storage.Class, entity, rest string) []byte {
	return append([]byte{byte(class), byte(len(entity))}, entity+rest...)
}

// Durable takes what a durable callback is told.
type Durable struct {
	mu     sync.Mutex
	told   sync.Cond
	end    storage.Offset
	err    error
	calls  int
	broken string
}

// NewDurable returns one that expects the log to begin at an offset.
func NewDurable(end storage.Offset) *Durable {
	d := &Durable{end: end}
	d.told.L = &d.mu
	return d
}

// Call is the callback to give to Open.
func (d *Durable) Call(end storage.Offset, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		d.broken = "called after an error"
	case err == nil && end <= d.end:
		d.broken = "called with an end that does not ascend"
	}
	d.calls++
	if err != nil {
		d.err = err
	} else {
		d.end = end
	}
	d.told.Broadcast()
}

// Append appends a step to the log that d belongs to.
func (d *Durable) Append(t TB, log storage.Log, recs []storage.Record) {
	t.Helper()
	if err := log.Append(recs); err != nil {
		t.Fatalf("append at %d: %v", log.End(), err)
	}
}

// Wait waits until the log is durable up to an offset. It fails the test when
// the callback brings an error or breaks its rules.
func (d *Durable) Wait(t TB, end storage.Offset) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.end < end && d.err == nil && d.broken == "" {
		d.told.Wait()
	}
	if d.broken != "" {
		t.Fatalf("the durable callback was %s", d.broken)
	}
	if d.err != nil {
		t.Fatalf("durable brought %v while waiting for %d", d.err, end)
	}
}

// End is how far the log is known to be durable.
func (d *Durable) End() storage.Offset {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end
}

// WaitError waits for the callback's error.
func (d *Durable) WaitError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.err == nil {
		d.told.Wait()
	}
	return d.err
}

// Calls is how many times the callback was called.
func (d *Durable) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Run checks a backend against the definition.
func Run(t *testing.T, f Factory) {
	tests := []struct {
		name string
		run  func(*testing.T, Factory)
	}{
		{"Offsets", testOffsets},
		{"DurableCallback", testDurableCallback},
		{"DurableNeverOnAppendsStack", testNeverOnStack},
		{"NoReferenceKept", testNoReference},
		{"Load", testLoad},
		{"Entities", testEntities},
		{"Read", testRead},
		{"Tombstones", testTombstones},
		{"PendingCountsWhenCommitted", testPendingCommitted},
		{"PendingIsGoneWhenAborted", testPendingAborted},
		{"PendingAndPlain", testPendingAndPlain},
		{"PendingAndTombstones", testPendingAndTombstones},
		{"BuriedStaysBuried", testBuriedStaysBuried},
		{"PendingOrphans", testPendingOrphans},
		{"ControlRecordsStay", testControlRecordsStay},
		{"Orphans", testOrphans},
		{"TimesAndNils", testTimesAndNils},
		{"VisitErrors", testVisitErrors},
		{"ShardsAreApart", testShardsAreApart},
		{"Fencing", testFencing},
		{"Closed", testClosed},
		{"CloseMakesDurable", testCloseMakesDurable},
		{"ReadBesideAppend", testReadBesideAppend},
		{"CrashKeepsAcknowledged", testCrash},
		{"Latest", testLatest},
		{"Purge", testPurge},
		{"Property", testProperty},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, f) })
	}
}
