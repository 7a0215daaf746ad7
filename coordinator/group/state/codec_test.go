package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// stored is a record as a log gives it back.
func stored(t *testing.T, c *Codec, r Record) storage.Record {
	t.Helper()
	k, v, tombstone := c.Append(nil, nil, &r)
	if tombstone {
		v = nil
	}
	return storage.Record{Key: k, Value: v, Txn: c.Txn(&r)}
}

func offset(topic string, partition int32, o int64, txn storage.Txn) Record {
	return Record{Kind: KindOffset, Group: "g", Topic: topic, Partition: partition, Txn: txn, Offset: Offset{
		Offset: o, LeaderEpoch: 5, Metadata: "m", Committed: time.UnixMilli(1e12).UTC(),
	}}
}

func TestTransactionsThroughTheCodec(t *testing.T) {
	pending := storage.Txn{Producer: 7, Epoch: 3, Kind: storage.Pending}
	tombstone := offset("t", 0, 0, pending)
	tombstone.Tombstone, tombstone.Offset = true, Offset{}
	for _, r := range []Record{
		offset("t", 1, 9, storage.Txn{}), offset("t", 1, 9, pending), tombstone,
		{Kind: KindMarker, Txn: storage.Txn{Producer: 7, Epoch: 3, Kind: storage.Commit}, CoordinatorEpoch: 11},
		{Kind: KindMarker, Txn: storage.Txn{Producer: 7, Epoch: 4, Kind: storage.Abort}, CoordinatorEpoch: -1},
	} {
		c := &Codec{Unreadable: func(g string, _ []byte, err error) { t.Errorf("%s: %v", g, err) }}
		if got := c.Decode(stored(t, c, r)); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", r) {
			t.Errorf("%+v became %+v", r, got)
		}
	}
}

// TestNothingButOffsetsIsPending: what a transaction of a later version holds is not guessed at.
func TestNothingButOffsetsIsPending(t *testing.T) {
	bad := 0
	c := &Codec{Unreadable: func(string, []byte, error) { bad++ }}
	pending := storage.Txn{Producer: 7, Kind: storage.Pending}
	r := c.Decode(stored(t, c, Record{Kind: KindGroup, Group: "g", Classic: &Classic{}, Txn: pending}))
	if bad != 1 || r.Kind != KindUnreadable || r.Txn != pending {
		t.Fatalf("%d are bad: %+v", bad, r)
	}
	s := NewGroups()
	s.Apply(0, &r)
	if !s.Group("g").Quarantined() {
		t.Fatal("the group goes on")
	}
	s.Apply(1, &Record{Kind: KindMarker, Txn: storage.Txn{Producer: 7, Kind: storage.Abort}})
	if s.Group("g") != nil {
		t.Fatal("the group is still there")
	}
}

// TestUnreadableHasItsPlace: an unreadable record supersedes the readable one of
// its key, and the other way round, by the offsets that they have.
func TestUnreadableHasItsPlace(t *testing.T) {
	c := &Codec{}
	in := func(producer int64) storage.Txn { return storage.Txn{Producer: producer, Kind: storage.Pending} }
	end := func(producer int64) Record {
		return Record{Kind: KindMarker, Txn: storage.Txn{Producer: producer, Kind: storage.Commit}}
	}
	unreadable := func(txn storage.Txn) Record {
		r := stored(t, c, offset("t", 1, 9, txn))
		r.Value = []byte{0, 9}
		return c.Decode(r)
	}
	s := NewGroups()
	state := func(want string) {
		t.Helper()
		got := "nothing"
		if g := s.Group("g"); g != nil {
			o, has := g.Offset("t", 1)
			got = fmt.Sprint(o.Offset, has, g.Quarantined(), g.Pending(), g.HasPending("t", 1), len(g.Transactions()))
		}
		if got != want {
			t.Helper()
			var b strings.Builder
			s.Dump(&b)
			t.Fatalf("got %s, want %s\n%s", got, want, b.String())
		}
	}
	apply := func(at storage.Offset, r Record) { s.Apply(at, &r) }
	apply(0, offset("t", 1, 1, storage.Txn{}))
	apply(1, unreadable(in(7)))
	state("1 true true 1 true 1")
	apply(2, offset("t", 1, 2, in(8)))
	state("1 true true 2 true 2")
	apply(3, end(7))
	state("0 false true 1 true 1")
	apply(4, end(8))
	state("2 true false 0 false 0")
	apply(5, unreadable(in(7)))
	apply(6, offset("t", 1, 3, storage.Txn{}))
	apply(7, end(7))
	state("3 true false 0 false 0")
	apply(8, unreadable(storage.Txn{}))
	state("0 false true 0 false 0")
	dead := offset("t", 1, 0, storage.Txn{})
	dead.Tombstone = true
	apply(9, c.Decode(stored(t, c, dead)))
	state("nothing")
	if s.Epoch(7) != -1 || len(s.Open(7)) != 0 {
		t.Fatal("a transaction is still open")
	}
}
