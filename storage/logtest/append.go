package logtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kcoord/kcoord/storage"
)

var startTime = time.UnixMilli(1_800_000_000_000).UTC()

// rec makes a record; the value "nil" makes a tombstone.
func rec(class storage.Class, entity, rest, value string) storage.Record {
	r := storage.Record{Key: Key(class, entity, rest), Value: []byte(value), Time: startTime}
	if value == "nil" {
		r.Value = nil
	}
	return r
}

// in makes a record part of a producer's transaction.
func in(producer int64, epoch int16, r storage.Record) storage.Record {
	r.Txn = storage.Txn{Producer: producer, Epoch: epoch, Kind: storage.Pending}
	return r
}

// end makes the control record that ends a producer's transaction.
func end(producer int64, epoch int16, kind storage.TxnKind) storage.Record {
	r := storage.Record{Time: startTime, Txn: storage.Txn{Producer: producer, Epoch: epoch, Kind: kind}}
	r.Key, r.Value = storage.AppendControl(nil, nil, kind, 5)
	return r
}

// open opens a shard's log, which is durable up to its end.
func open(t TB, s *Store, id storage.ShardID) (storage.Log, *Durable) {
	t.Helper()
	d := NewDurable(-1)
	log, err := s.Open(id, d.Call)
	if err != nil {
		t.Fatalf("open shard %d: %v", id, err)
	}
	return log, d
}

// put appends steps and waits until they are durable.
func put(t TB, log storage.Log, d *Durable, steps ...[]storage.Record) {
	t.Helper()
	for _, recs := range steps {
		d.Append(t, log, recs)
	}
	d.Wait(t, log.End())
}

func testOffsets(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 3)
	if log.End() != 0 {
		t.Fatalf("a new log ends at %d", log.End())
	}
	d.Append(t, log, nil)
	if log.End() != 0 {
		t.Fatalf("appending nothing moved the end to %d", log.End())
	}
	put(t, log, d, []storage.Record{rec(storage.Body, "a", "1", "x"), rec(storage.Body, "a", "2", "x")})
	put(t, log, d, []storage.Record{rec(storage.Header, "a", "", "x")})
	if log.End() != 3 {
		t.Fatalf("three records end at %d", log.End())
	}
	again, _ := open(t, s, 3)
	if again.End() != 3 {
		t.Fatalf("reopened at %d", again.End())
	}
	if s.Reopen != nil {
		if log, _ := open(t, s.Reopen(), 3); log.End() != 3 {
			t.Fatalf("the reopened backend ends at %d", log.End())
		}
	}
}

func testDurableCallback(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	const steps = 200
	for i := range steps {
		d.Append(t, log, []storage.Record{rec(storage.Body, "e", fmt.Sprint(i), "v"), rec(storage.Header, "e", "", "v")})
	}
	d.Wait(t, 2*steps)
	if n := d.Calls(); n == 0 || n > steps {
		t.Fatalf("%d steps brought %d callbacks", steps, n)
	}
}

// testNeverOnStack holds a lock while appending that the callback takes too.
func testNeverOnStack(t *testing.T, f Factory) {
	s := f(t)
	var mu sync.Mutex
	d := NewDurable(-1)
	log, err := s.Open(0, func(end storage.Offset, err error) {
		mu.Lock()
		defer mu.Unlock()
		d.Call(end, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		mu.Lock()
		d.Append(t, log, []storage.Record{rec(storage.Body, "e", "k", "v")})
		mu.Unlock()
	}
	d.Wait(t, 100)
}

func testNoReference(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	recs := []storage.Record{rec(storage.Body, "e", "k", "value")}
	d.Append(t, log, recs)
	for _, b := range [][]byte{recs[0].Key, recs[0].Value} {
		clear(b)
	}
	recs[0] = storage.Record{}
	d.Wait(t, 1)
	expectLoad(t, log, "e", "0 body e/k = value")
}

func testShardsAreApart(t *testing.T, f Factory) {
	s := f(t)
	a, da := open(t, s, 0)
	b, db := open(t, s, 256) // another byte of the id
	c, dc := open(t, s, 1)
	put(t, a, da, []storage.Record{rec(storage.Header, "e", "", "a")})
	put(t, b, db, []storage.Record{rec(storage.Header, "e", "", "b"), rec(storage.Body, "e", "k", "b")})
	put(t, c, dc, []storage.Record{rec(storage.Header, "f", "", "c")})
	expectLoad(t, a, "e", "0 header e/ = a")
	expectLoad(t, b, "e", "0 header e/ = b", "1 body e/k = b")
	expectLoad(t, c, "e")
	o, do := open(t, s, OtherShards)
	put(t, o, do, []storage.Record{rec(storage.Header, "e", "", "o")})
	expectEntities(t, o)
	expectEntities(t, c, "f: 0 header f/ = c")
	expectRead(t, a, 0, "0 header e/ = a")
}

func testFencing(t *testing.T, f Factory) {
	s := f(t)
	old, d := open(t, s, 0)
	put(t, old, d, []storage.Record{rec(storage.Header, "e", "", "1")})
	d.Append(t, old, []storage.Record{rec(storage.Header, "e", "", "2")}) // perhaps not durable yet
	log, nd := open(t, s, 0)
	calls := d.Calls()
	if log.End() != 2 {
		t.Fatalf("the new log ends at %d", log.End())
	}
	expectLoad(t, log, "e", "1 header e/ = 2")
	for what, err := range map[string]error{
		"append":   old.Append([]storage.Record{rec(storage.Header, "e", "", "3")}),
		"load":     old.Load([]byte("e"), func(storage.Offset, storage.Record) error { return nil }),
		"entities": old.Entities(func([]byte, []storage.Located, bool) error { return nil }),
		"read":     old.Read(0, func(storage.Offset, storage.Record) error { return nil }),
	} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s on a fenced log: %v", what, err)
		}
	}
	put(t, log, nd, []storage.Record{rec(storage.Header, "e", "", "4")})
	expectRead(t, log, 0, superseded+"0 header e/ = 1", superseded+"1 header e/ = 2", "2 header e/ = 4")
	if d.Calls() != calls {
		t.Errorf("the fenced log's durable was called after the reopening")
	}
}

func testClosed(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{rec(storage.Header, "e", "", "1")})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if err := log.Append([]storage.Record{rec(storage.Header, "e", "", "2")}); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := log.Read(0, func(storage.Offset, storage.Record) error { return nil }); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.Open(0, d.Call); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("open: %v", err)
	}
}

func testCloseMakesDurable(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	for range 50 {
		d.Append(t, log, []storage.Record{rec(storage.Body, "e", "k", "v")})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d.End() != 50 {
		t.Fatalf("Close returned with %d of 50 told durable", d.End())
	}
}

// testCrash crashes with steps under way: what was acknowledged is there, and no step in part.
func testCrash(t *testing.T, f Factory) {
	s := f(t)
	if s.Crash == nil {
		t.Skip("the backend cannot crash")
	}
	ends := map[storage.Offset]bool{0: true}
	acked := storage.Offset(0)
	for round := range 5 {
		log, d := open(t, s, 7)
		if end := log.End(); end < acked || !ends[end] {
			t.Fatalf("round %d: %d after the crash, with %d acknowledged and steps ending at %v", round, end, acked, ends)
		}
		clear(ends)
		ends[log.End()] = true
		d.end = log.End()
		for step := range 20 {
			var recs []storage.Record
			for i := range step%4 + 1 {
				recs = append(recs, rec(storage.Body, "e", fmt.Sprint(i), fmt.Sprint(round, step)))
			}
			d.Append(t, log, recs)
			ends[log.End()] = true
			if step == 9 {
				d.Wait(t, log.End())
			}
		}
		acked = d.End()
		s = s.Crash()
	}
}
