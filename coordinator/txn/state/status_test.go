package state

import (
	"testing"

	"github.com/kcoord/kcoord/internal/recordbin"
)

// TestTransitions holds the whole table: for each state, what may follow it.
func TestTransitions(t *testing.T) {
	after := map[Status][]Status{
		Empty:             {Empty, Ongoing, PrepareAbort, Dead},
		Ongoing:           {Ongoing, PrepareCommit, PrepareAbort},
		PrepareCommit:     {PrepareCommit, CompleteCommit},
		PrepareAbort:      {PrepareAbort, CompleteAbort},
		CompleteCommit:    {Empty, Ongoing, PrepareAbort, Dead},
		CompleteAbort:     {Empty, Ongoing, PrepareAbort, Dead},
		Dead:              {},
		PrepareEpochFence: {},
	}
	if len(after) != len(statusNames) || len(statusBefore) != len(statusNames) {
		t.Fatalf("%d states, %d in the table, %d here", len(statusNames), len(statusBefore), len(after))
	}
	for from := range Status(len(statusNames)) {
		want := map[Status]bool{}
		for _, to := range after[from] {
			want[to] = true
		}
		for to := range Status(len(statusNames)) {
			if got := to.Follows(from); got != want[to] {
				t.Errorf("%v after %v: %t", to, from, got)
			}
		}
	}
}

// TestStates holds what Kafka numbers and names, and what else is asked of a state.
func TestStates(t *testing.T) {
	for i, w := range []struct {
		name                     string
		preparing, open, written bool
	}{
		{name: "Empty", written: true},
		{name: "Ongoing", open: true, written: true},
		{name: "PrepareCommit", preparing: true, open: true, written: true},
		{name: "PrepareAbort", preparing: true, open: true, written: true},
		{name: "CompleteCommit", written: true},
		{name: "CompleteAbort", written: true},
		{name: "Dead"},
		{name: "PrepareEpochFence"},
	} {
		s := Status(i)
		if s.String() != w.name || s.Preparing() != w.preparing || s.Open() != w.open || s.Written() != w.written {
			t.Errorf("%d is %v: preparing %t, open %t, written %t", i, s, s.Preparing(), s.Open(), s.Written())
		}
		if got, is := StatusOf(w.name); got != s || !is {
			t.Errorf("%s is %v, %t", w.name, got, is)
		}
	}
	for _, name := range []string{"", "empty", "Nonsense"} {
		if s, is := StatusOf(name); is {
			t.Errorf("%q is %v", name, s)
		}
	}
}

// TestWhatMayNotFollowPanics: a decision that breaks the table is a bug, and ends in no record.
func TestWhatMayNotFollowPanics(t *testing.T) {
	for name, f := range map[string]func(*Txn){
		"init while ongoing":    func(x *Txn) { x.Status = Ongoing; x.Initialised(x.Producer, 0, 0, x.Updated) },
		"add while preparing":   func(x *Txn) { x.Status = PrepareCommit; x.With(nil, 0, x.Updated) },
		"commit of nothing":     func(x *Txn) { x.Prepared(true, 2, true, NoProducerID, x.Updated) },
		"decided twice":         func(x *Txn) { x.Status = PrepareAbort; x.Prepared(true, 0, false, NoProducerID, x.Updated) },
		"complete before it is": func(x *Txn) { x.Status = Ongoing; x.Completed(x.Updated) },
		"an epoch too far":      func(x *Txn) { x.Producer.Epoch = 32767; x.Prepared(false, 2, true, NoProducerID, x.Updated) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			x := New(1, 0, recordbin.Instant(1))
			f(&x)
		}()
	}
}
