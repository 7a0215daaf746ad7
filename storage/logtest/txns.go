package logtest

import (
	"testing"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// txnKey is the body record of entity e that the tests of transactions write.
func txnKey(rest, value string) storage.Record { return rec(storage.Body, "e", rest, value) }

// everySplit appends records one by one and checks what they come to, however
// many of them were folded when the rest came, and again after a cleaning.
func everySplit(t *testing.T, f Factory, recs []storage.Record, check func(storage.Log)) {
	for n := 1; n <= len(recs); n++ {
		s := f(t)
		log, d := open(t, s, 0)
		put(t, log, d, recs[:n])
		if s.Fold != nil {
			s.Fold(0)
		}
		put(t, log, d, recs[n:])
		check(log)
		s = eachView(t, s, 0, check)
		s.Clean(0, startTime)
		log, _ = open(t, s, 0)
		check(log)
		eachView(t, s, 0, check)
	}
}

func testPendingCommitted(t *testing.T, f Factory) {
	recs := []storage.Record{
		txnKey("a", "plain"), in(7, 0, txnKey("a", "1")), in(8, 3, txnKey("a", "8")), in(7, 0, txnKey("b", "2")),
		in(7, 1, txnKey("b", "3")), in(7, 1, rec(storage.Header, "f", "", "h")),
	}
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "0 body e/a = plain", "1 body e/a = 1 pending in 7/0", "2 body e/a = 8 pending in 8/3", "4 body e/b = 3 pending in 7/1")
		expectLoad(t, log, "f", "5 header f/ = h pending in 7/1")
		expectEntities(t, log, "e: pending", "f: pending")
	})
	recs = append(recs, end(7, 1, storage.Commit))
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "1 body e/a = 1", "4 body e/b = 3", "2 body e/a = 8 pending in 8/3")
		expectEntities(t, log, "e: pending", "f: 5 header f/ = h")
	})
	recs = append(recs, end(8, 3, storage.Commit), end(9, 0, storage.Commit))
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "2 body e/a = 8", "4 body e/b = 3")
		expectEntities(t, log, "e:", "f: 5 header f/ = h")
	})
}

func testPendingAborted(t *testing.T, f Factory) {
	recs := []storage.Record{
		txnKey("a", "plain"), in(7, 0, txnKey("a", "1")), in(7, 0, rec(storage.Body, "f", "", "1")), end(7, 5, storage.Abort),
		in(7, 5, txnKey("b", "2")), end(7, 5, storage.Commit), end(7, 5, storage.Abort),
	}
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "0 body e/a = plain", "4 body e/b = 2")
		expectLoad(t, log, "f")
		expectEntities(t, log, "e:")
	})
}

// testPendingAndPlain: of a plain and a committed record the later one counts.
func testPendingAndPlain(t *testing.T, f Factory) {
	recs := []storage.Record{
		txnKey("before", "plain"), in(7, 0, txnKey("before", "txn")), in(7, 0, txnKey("after", "txn")), txnKey("after", "plain"),
		in(8, 0, txnKey("two", "8")), in(7, 0, txnKey("two", "7")),
	}
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "3 body e/after = plain", "0 body e/before = plain",
			"1 body e/before = txn pending in 7/0", "2 body e/after = txn pending in 7/0", "4 body e/two = 8 pending in 8/0", "5 body e/two = 7 pending in 7/0")
	})
	recs = append(recs, end(7, 0, storage.Commit), end(8, 0, storage.Commit))
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "3 body e/after = plain", "1 body e/before = txn", "5 body e/two = 7")
		expectEntities(t, log, "e:")
	})
}

// testPendingAndTombstones: a tombstone ends what is pending of its key, whoever's it is.
func testPendingAndTombstones(t *testing.T, f Factory) {
	recs := []storage.Record{
		txnKey("a", "plain"), in(7, 0, txnKey("a", "7")), in(8, 0, txnKey("a", "8")), in(7, 0, txnKey("b", "7")), txnKey("a", "nil"),
		in(8, 0, txnKey("b", "nil")), in(7, 0, txnKey("c", "7")),
	}
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "6 body e/c = 7 pending in 7/0")
		expectEntities(t, log, "e: pending")
	})
	recs = append(recs, txnKey("c", "nil"))
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e")
		expectEntities(t, log)
	})
	recs = append(recs, in(7, 0, txnKey("c", "again")), end(7, 0, storage.Commit), end(8, 0, storage.Commit))
	everySplit(t, f, recs, func(log storage.Log) {
		expectLoad(t, log, "e", "8 body e/c = again")
		expectEntities(t, log, "e:")
	})
}

// testBuriedStaysBuried: who reads the log finds the tombstone, superseded or not, while
// what it ended is there.
func testBuriedStaysBuried(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	for _, r := range []storage.Record{in(7, 0, txnKey("a", "7")), txnKey("a", "nil"), txnKey("a", "1")} {
		put(t, log, d, []storage.Record{r}) // each is a commit
	}
	s = eachView(t, s, 0, func(log storage.Log) {
		expectRead(t, log, 0, "0 body e/a = 7 pending in 7/0", "1 body e/a = nil", "2 body e/a = 1")
		expectLoad(t, log, "e", "2 body e/a = 1")
	})
	s.Clean(0, startTime)
	eachView(t, s, 0, func(log storage.Log) { expectRead(t, log, 0, "2 body e/a = 1") })
}

// testPendingOrphans: what is of no entity is kept by the same rules.
func testPendingOrphans(t *testing.T, f Factory) {
	orphan := func(value string) storage.Record {
		return storage.Record{Key: []byte{77}, Value: []byte(value), Time: startTime}
	}
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{orphan("0"), in(7, 0, orphan("1")), in(8, 0, orphan("2"))})
	s.Clean(0, startTime)
	expectEntities(t, log)
	expectLoad(t, log, "")
	expectRead(t, log, 0, "0 orphan / = 0", "1 orphan / = 1 pending in 7/0", "2 orphan / = 2 pending in 8/0")
	put(t, log, d, []storage.Record{end(8, 0, storage.Abort), end(7, 0, storage.Commit)})
	s.Clean(0, startTime)
	eachView(t, s, 0, func(log storage.Log) {
		expectEntities(t, log)
		expectRead(t, log, 0, "1 orphan / = 1 pending in 7/0", "4 control 2 of 7/0, 5, true")
	})
}

// testControlRecordsStay: for as long as what they commit is there, and no longer.
func testControlRecordsStay(t *testing.T, f Factory) {
	s := f(t)
	log, d := open(t, s, 0)
	put(t, log, d, []storage.Record{in(7, 0, txnKey("a", "1")), in(7, 0, txnKey("b", "1")), end(7, 0, storage.Commit), end(6, 0, storage.Commit)},
		[]storage.Record{in(7, 0, txnKey("a", "2")), end(7, 0, storage.Abort)})
	clean := func(want ...string) {
		t.Helper()
		s.Clean(0, startTime)
		s = eachView(t, s, 0, func(log storage.Log) { expectRead(t, log, 0, want...) })
		log, d = open(t, s, 0)
	}
	clean("0 body e/a = 1 pending in 7/0", "1 body e/b = 1 pending in 7/0", "2 control 2 of 7/0, 5, true")
	put(t, log, d, []storage.Record{txnKey("a", "3")})
	clean("1 body e/b = 1 pending in 7/0", "2 control 2 of 7/0, 5, true", "6 body e/a = 3")
	put(t, log, d, []storage.Record{in(7, 0, txnKey("b", "4"))})
	clean("1 body e/b = 1 pending in 7/0", "2 control 2 of 7/0, 5, true", "6 body e/a = 3", "7 body e/b = 4 pending in 7/0")
	put(t, log, d, []storage.Record{end(7, 0, storage.Commit)})
	clean("6 body e/a = 3", "7 body e/b = 4 pending in 7/0", "8 control 2 of 7/0, 5, true")
	put(t, log, d, []storage.Record{txnKey("b", "nil")})
	clean("6 body e/a = 3", "9 body e/b = nil")
	s.Clean(0, startTime.Add(Retention+time.Millisecond))
	clean("6 body e/a = 3")
}
