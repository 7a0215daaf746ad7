package logtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// line prints a record, the way the tests write it.
func line(off storage.Offset, r storage.Record) string {
	if r.Txn.Kind.Control() {
		kind, err := storage.ControlKind(r.Key)
		return fmt.Sprintf("%d control %d of %d/%d, %d, %v", off, r.Txn.Kind, r.Txn.Producer, r.Txn.Epoch, storage.CoordinatorEpoch(r.Value), err == nil && kind == r.Txn.Kind)
	}
	entity, class := Index(0, r.Key)
	var rest string
	if len(r.Key) >= 2+len(entity) {
		rest = string(r.Key[2+len(entity):])
	}
	value := string(r.Value)
	if r.Value == nil {
		value = "nil"
	}
	s := fmt.Sprintf("%d %s %s/%s = %s", off, [...]string{"header", "body", "orphan"}[class], entity, rest, value)
	if r.Txn != (storage.Txn{}) {
		s += fmt.Sprintf(" pending in %d/%d", r.Txn.Producer, r.Txn.Epoch)
	}
	return s
}

func expect(t TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func expectLoad(t TB, log storage.Log, entity string, want ...string) {
	t.Helper()
	var got []string
	err := log.Load([]byte(entity), func(off storage.Offset, r storage.Record) error {
		got = append(got, line(off, r))
		return nil
	})
	if err != nil {
		t.Fatalf("load %q: %v", entity, err)
	}
	expect(t, fmt.Sprintf("load %q", entity), got, want)
}

func expectEntities(t TB, log storage.Log, want ...string) {
	t.Helper()
	var got []string
	err := log.Entities(func(entity []byte, headers []storage.Located, pending bool) error {
		s := string(entity) + ":"
		for _, h := range headers {
			s += " " + line(h.Offset, h.Record)
		}
		if pending {
			s += " pending"
		}
		got = append(got, s)
		return nil
	})
	if err != nil {
		t.Fatalf("entities: %v", err)
	}
	expect(t, "entities", got, want)
}

// superseded marks what a log may have removed on its own, since a later record took its place.
const superseded = "~ "

// expectRead checks what is read; the lines of want that are superseded may be missing.
func expectRead(t TB, log storage.Log, from storage.Offset, want ...string) {
	t.Helper()
	var got []string
	err := log.Read(from, func(off storage.Offset, r storage.Record) error {
		got = append(got, line(off, r))
		return nil
	})
	if err != nil {
		t.Fatalf("read from %d: %v", from, err)
	}
	var there []string // want without what may be missing and is
	for _, l := range want {
		l, may := strings.CutPrefix(l, superseded)
		if !may || slices.Contains(got, l) {
			there = append(there, l)
		}
	}
	expect(t, fmt.Sprintf("read from %d", from), got, there)
}

// eachView runs a check now, after a fold and after a reopening: none of them
// may change what is seen. It returns the store after that.
func eachView(t *testing.T, s *Store, id storage.ShardID, check func(storage.Log)) *Store {
	log, _ := open(t, s, id)
	check(log)
	if s.Fold != nil {
		s.Fold(id)
		check(log)
	}
	log, _ = open(t, s, id)
	check(log)
	if s.Reopen != nil {
		s = s.Reopen()
		log, _ = open(t, s, id)
		check(log)
	}
	return s
}

func testLoad(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{
		rec(storage.Body, "a", "y", "1"), rec(storage.Body, "a", "x", "1"), rec(storage.Header, "a", "h2", "1"),
		rec(storage.Header, "a", "h1", "1"), rec(storage.Body, "ab", "x", "other"), rec(storage.Body, "", "x", "nobody's"),
		rec(storage.Body, "a\x00", "x", "zero"), rec(storage.Body, "a\xff", "x", "ff"), rec(storage.Body, "a\x00\x01", "x", "escape"),
	}, []storage.Record{
		rec(storage.Body, "a", "x", "2"), rec(storage.Body, "a", "x", "3"),
	})
	check := func(log storage.Log) {
		expectLoad(t, log, "a", "3 header a/h1 = 1", "2 header a/h2 = 1", "10 body a/x = 3", "0 body a/y = 1")
		expectLoad(t, log, "ab", "4 body ab/x = other")
		expectLoad(t, log, "", "5 body /x = nobody's")
		expectLoad(t, log, "a\x00", "6 body a\x00/x = zero")
		expectLoad(t, log, "a\xff", "7 body a\xff/x = ff")
		expectLoad(t, log, "a\x00\x01", "8 body a\x00\x01/x = escape")
		expectLoad(t, log, "nothing")
	}
	check(log)
	eachView(t, s, 0, check)
}

func testEntities(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{
		rec(storage.Body, "b", "x", "1"), rec(storage.Header, "c", "2", "1"), rec(storage.Header, "c", "1", "1"),
		rec(storage.Body, "c", "x", "1"), rec(storage.Header, "a", "", "1"), rec(storage.Header, "a\x00b", "", "1"),
		rec(storage.Header, "", "", "1"), rec(storage.Header, "ab", "", "1"), rec(storage.Body, "gone", "", "nil"),
	}, []storage.Record{
		rec(storage.Header, "c", "1", "2"),
	})
	check := func(log storage.Log) {
		expectEntities(t, log, ": 6 header / = 1", "a: 4 header a/ = 1", "a\x00b: 5 header a\x00b/ = 1", "ab: 7 header ab/ = 1",
			"b:", "c: 9 header c/1 = 2 1 header c/2 = 1")
	}
	check(log)
	eachView(t, s, 0, check)
}

func testRead(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{rec(storage.Body, "a", "x", "0"), rec(storage.Body, "a", "x", "1")})
	put(t, log, d, []storage.Record{rec(storage.Orphan, "", "o", "2"), rec(storage.Body, "a", "x", "nil")})
	eachView(t, s, 0, func(log storage.Log) {
		expectRead(t, log, 0, superseded+"0 body a/x = 0", superseded+"1 body a/x = 1", "2 orphan /o = 2", "3 body a/x = nil")
		expectRead(t, log, 1, superseded+"1 body a/x = 1", "2 orphan /o = 2", "3 body a/x = nil")
		expectRead(t, log, 3, "3 body a/x = nil")
		expectRead(t, log, 4)
		expectRead(t, log, 99)
	})
}

func testTombstones(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{
		rec(storage.Header, "a", "", "1"), rec(storage.Body, "a", "x", "1"), rec(storage.Body, "a", "y", "1"), rec(storage.Header, "b", "", "1"),
	})
	if s.Fold != nil {
		s.Fold(0) // the tombstones meet rows that are there
	}
	put(t, log, d, []storage.Record{rec(storage.Body, "a", "x", "nil"), rec(storage.Header, "b", "", "nil"), rec(storage.Header, "a", "", "nil")})
	check := func(log storage.Log) {
		expectLoad(t, log, "a", "2 body a/y = 1")
		expectLoad(t, log, "b")
		expectEntities(t, log, "a:")
	}
	check(log)
	s = eachView(t, s, 0, check)
	log, d = open(t, s, 0)
	s.Clean(0, startTime.Add(Retention)) // just not too old
	check(log)
	expectRead(t, log, 0, "2 body a/y = 1", "4 body a/x = nil", "5 header b/ = nil", "6 header a/ = nil")
	s.Clean(0, startTime.Add(Retention+time.Millisecond))
	check(log)
	expectRead(t, log, 0, "2 body a/y = 1")
	put(t, log, d, []storage.Record{rec(storage.Body, "a", "x", "back"), rec(storage.Body, "a", "y", "nil")})
	expectLoad(t, log, "a", "7 body a/x = back")
	put(t, log, d, []storage.Record{rec(storage.Body, "a", "x", "nil")})
	expectEntities(t, log)
	s.Clean(0, startTime.Add(2*Retention))
	log, _ = open(t, s, 0)
	if log.End() != 10 { // nothing is left, and yet
		t.Fatalf("a log cleaned of everything ends at %d", log.End())
	}
	if s.Reopen != nil {
		if log, _ := open(t, s.Reopen(), 0); log.End() != 10 {
			t.Fatalf("a log cleaned of everything ends at %d after reopening", log.End())
		}
	}
}

func testOrphans(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{
		{Key: []byte{}, Value: []byte("empty key"), Time: startTime}, {Key: []byte{77}, Value: []byte("1"), Time: startTime},
		{Key: []byte{77}, Value: []byte("2"), Time: startTime}, {Key: []byte{77, 1}, Value: nil, Time: startTime},
	})
	check := func(log storage.Log) {
		expectEntities(t, log)
		expectLoad(t, log, "")
	}
	s = eachView(t, s, 0, check)
	log, _ = open(t, s, 0)
	s.Clean(0, startTime)
	check(log)
	var got []storage.Offset
	if err := log.Read(0, func(off storage.Offset, _ storage.Record) error { got = append(got, off); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []storage.Offset{0, 2, 3}) {
		t.Fatalf("orphans at %v are left", got)
	}
}

func testTimesAndNils(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	times := []time.Time{startTime.Add(1500 * time.Microsecond), startTime.Add(-time.Hour), time.UnixMilli(-1), {}, startTime.Add(1e6 * time.Hour)}
	var recs []storage.Record
	for i, at := range times {
		recs = append(recs, storage.Record{Key: Key(storage.Body, "e", fmt.Sprint(i)), Value: []byte{}, Time: at})
	}
	put(t, log, d, recs)
	eachView(t, s, 0, func(log storage.Log) {
		check := func(off storage.Offset, r storage.Record) error {
			if !r.Time.Equal(times[off].Truncate(time.Millisecond)) {
				t.Errorf("%d: %v became %v", off, times[off], r.Time)
			}
			if r.Value == nil {
				t.Errorf("%d: an empty value became a tombstone", off)
			}
			return nil
		}
		if err := errors.Join(log.Load([]byte("e"), check), log.Read(0, check)); err != nil {
			t.Fatal(err)
		}
	})
}

func testVisitErrors(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{rec(storage.Header, "a", "", "1"), rec(storage.Header, "b", "", "1"), rec(storage.Body, "a", "", "1")})
	stop := errors.New("stop")
	visits := 0
	one := func(storage.Offset, storage.Record) error { visits++; return stop }
	for what, err := range map[string]error{
		"load":     log.Load([]byte("a"), one),
		"read":     log.Read(0, one),
		"entities": log.Entities(func([]byte, []storage.Located, bool) error { visits++; return stop }),
	} {
		if !errors.Is(err, stop) {
			t.Errorf("%s returned %v", what, err)
		}
	}
	if visits != 3 {
		t.Errorf("%d visits", visits)
	}
}

// testReadBesideAppend reads from another goroutine while the log grows and is cleaned.
func testReadBesideAppend(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	var reader sync.WaitGroup
	done := make(chan struct{})
	reader.Go(func() {
		for {
			last := storage.Offset(-1)
			latest := map[string]string{}
			err := log.Read(0, func(off storage.Offset, r storage.Record) error {
				if off <= last {
					return fmt.Errorf("offset %d after %d", off, last)
				}
				last = off
				latest[string(r.Key)] = string(r.Value)
				return nil
			})
			if err != nil {
				t.Errorf("read: %v", err)
				return
			}
			// Every step writes the same number under both keys.
			if a, b := latest[string(Key(storage.Body, "e", "1"))], latest[string(Key(storage.Body, "e", "2"))]; a != b {
				t.Errorf("a step in part: %q and %q", a, b)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range 300 {
		v := fmt.Sprint(i)
		d.Append(t, log, []storage.Record{rec(storage.Body, "e", "1", v), rec(storage.Body, "e", "2", v)})
		if i%50 == 49 {
			d.Wait(t, log.End())
			s.Clean(0, startTime)
		}
	}
	d.Wait(t, log.End())
	close(done)
	reader.Wait()
}
