package logtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/kcoord/kcoord/storage"
)

// kept are the records of the tests of storage.Keeper: superseded ones, a tombstone,
// orphans, one that was committed and one that is pending.
func kept() []storage.Record {
	orphan := storage.Record{Key: []byte{9, 9}, Value: []byte("o1"), Time: rec(storage.Body, "e", "a", "").Time}
	later := orphan
	later.Value = []byte("o2")
	gone := rec(storage.Body, "e", "b", "")
	gone.Value = nil
	return []storage.Record{
		rec(storage.Body, "e", "a", "1"), rec(storage.Body, "e", "b", "2"), rec(storage.Header, "e", "h", "3"), orphan, // 0–3
		gone, rec(storage.Body, "e", "a", "4"), later, // 4–6
		in(7, 1, txnKey("c", "5")), end(7, 1, storage.Commit), in(8, 2, txnKey("a", "6")), // 7–9
	}
}

func expectLatest(t TB, s *Store, want ...string) {
	t.Helper()
	var got []string
	pending := false
	err := s.Backend.(storage.Keeper).Latest(0, func(off storage.Offset, r storage.Record) error {
		if pending && r.Txn.Kind != storage.Pending {
			t.Errorf("%s comes after a pending record", line(off, r))
		}
		pending = pending || r.Txn.Kind == storage.Pending
		got = append(got, line(off, r))
		return nil
	})
	if err != nil {
		t.Fatalf("latest: %v", err)
	}
	slices.Sort(got)
	slices.Sort(want)
	expect(t, "latest", got, want)
}

func lines(recs []storage.Record, plain bool, of ...int) []string {
	var out []string
	for _, i := range of {
		r := recs[i]
		if plain && r.Txn.Kind == storage.Pending && r.Txn.Producer == 7 { // the one that is committed
			r.Txn = storage.Txn{}
		}
		out = append(out, line(storage.Offset(i), r))
	}
	return out
}

func testLatest(t *testing.T, f Factory) {
	s, recs := f(t), kept()
	expectLatest(t, s)
	log, d := open(t, s, 0)
	put(t, log, d, recs)
	expectLatest(t, s, lines(recs, true, 2, 4, 5, 6, 7, 9)...)
	stop := errors.New("stop")
	err := s.Backend.(storage.Keeper).Latest(0, func(storage.Offset, storage.Record) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the visit's error became %v", err)
	}
}

// testPurge: what is left is what Latest shows, without the tombstones that are
// forgotten, and no view but Read's has changed.
func testPurge(t *testing.T, f Factory) {
	s, recs := f(t), kept()
	log, d := open(t, s, 0)
	put(t, log, d, recs)
	keeper := s.Backend.(storage.Keeper)
	if err := keeper.Purge(0, func([]byte) bool { return false }); err != nil {
		t.Fatal(err)
	}
	expectRead(t, log, 0, lines(recs, false, 2, 4, 5, 6, 7, 8, 9)...)
	if err := keeper.Purge(0, func(key []byte) bool { return string(key) == string(recs[4].Key) }); err != nil {
		t.Fatal(err)
	}
	expectRead(t, log, 0, lines(recs, false, 2, 5, 6, 7, 8, 9)...)
	expectLatest(t, s, lines(recs, true, 2, 5, 6, 7, 9)...)
	put(t, log, d, []storage.Record{rec(storage.Body, "e", "b", "7")})
	expectLatest(t, s, append(lines(recs, true, 2, 5, 6, 7, 9), line(10, rec(storage.Body, "e", "b", "7")))...)
}
