package pebblelog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// TestSuperseded: which batches a fold need not read. A step is "entity:key …", with - before keys that it buries and ~
// before those of a transaction, and a batch is what follows a "|". What is wanted is by base offset.
func TestSuperseded(t *testing.T) {
	for _, tc := range []struct{ log, want string }{
		{"| a:k a:l ; | a:k a:l", "0"},
		{"| a:k ; | a:k ; | a:k", "0 1"},
		{"| a:k ; a:k ; | a:k", "0"},
		{"| a:k ; | z:k ; | a:k ; | z:k", "0 1"},
		{"| a:k ; z:k ; | a:k ; | z:k", "0"},
		{"| a:k ; z:k ; | a:k", ""},          // z's is not superseded
		{"| a:k ; | a:k a:l", ""},            // more keys, which the fold finds out
		{"| a:k a:l ; | a:k", ""},            // fewer
		{"| a:k a:l ; | a:l a:k", ""},        // another order
		{"| a:k ; | a:l ; | a:k", ""},        // not the step before
		{"| a:k ; | a:-k ; | a:k", ""},       // a tombstone ends what is pending, too
		{"| a:k ; | a:~k ; | a:k", ""},       // what is pending may count
		{"| a:k z:k ; | a:k z:k", ""},        // two entities
		{"| ?:k ; | ?:k", ""},                // none
		{"| a:k ; | a:~k ; | ! ; | a:k", ""}, // the end of a transaction
	} {
		var u unfolded
		u.init(func(key []byte) ([]byte, storage.Class) { return logtest.Index(0, key) })
		end := storage.Offset(0)
		var last storage.Offset // where the last step begins
		for text := range strings.SplitSeq(tc.log, ";") {
			recs, begins := stepOf(text)
			if begins {
				u.begin(end)
			}
			last = end
			s := u.step(recs)
			for i := range recs {
				u.add(&s, &recs[i], end)
				end++
			}
			u.end(&s, recs, end)
			for i := range recs {
				if entity, class := logtest.Index(0, recs[i].Key); class != storage.Orphan && !recs[i].Txn.Kind.Control() && u.touched[string(entity)].last < last {
					t.Errorf("%s: %q has an entity that seems untouched", tc.log, recs[i].Key)
				}
			}
		}
		if got := bases(&u, end); got != tc.want {
			t.Errorf("%s: %q are superseded, not %q", tc.log, got, tc.want)
		}
		// While the last step is not durable nothing is superseded by it.
		for base := range strings.FieldsSeq(bases(&u, last)) {
			for _, b := range u.batches {
				if fmt.Sprint(b.base) == base && b.superseded > last {
					t.Errorf("%s: %s is superseded by what is not durable", tc.log, base)
				}
			}
		}
		u.forget(end)
		if len(u.touched) != 0 || len(u.batches) != 0 || u.control != -1 {
			t.Errorf("%s: %+v is left", tc.log, u)
		}
	}
}

// TestFoldOfWhatIsSuperseded: what a fold does not read it takes out of the log, and counts.
func TestFoldOfWhatIsSuperseded(t *testing.T) {
	o := small(vfs.NewMem())
	o.FoldBytes, o.FoldTotalBytes = 1<<30, 1<<30
	b := mustOpen(t, "data", o)
	defer b.Close()
	log, told := openShard(t, b, 0)
	s := b.shard(0)
	step := func(value string) []storage.Record {
		var recs []storage.Record
		for i := range 20 {
			recs = append(recs, body("e", fmt.Sprint(i), value))
		}
		return recs
	}
	var sizes, stored []int64
	for i := range 5 {
		recs := step(strings.Repeat(fmt.Sprint(i), 100))
		if i == 3 { // this one is not written again
			recs = recs[1:]
		}
		if err := log.Append(recs); err != nil {
			t.Fatal(err)
		}
		told.Wait(t, log.End())
		last := s.unfolded.batches[i]
		sizes, stored = append(sizes, int64(last.size)), append(stored, int64(last.stored))
	}
	if stored[0] >= sizes[0]/2 {
		t.Fatalf("%d bytes are stored as %d", sizes[0], stored[0])
	}
	if got, want := s.tail.Load(), stored[0]+stored[1]+sizes[2]+sizes[3]+sizes[4]; got != want || b.tails.Load() != want {
		t.Errorf("the tail weighs %d, all tails %d, not %d", got, b.tails.Load(), want)
	}
	if err := s.fold(); err != nil {
		t.Fatal(err)
	}
	if s.tail.Load() != 0 || b.tails.Load() != 0 {
		t.Errorf("folded it weighs %d, all tails %d", s.tail.Load(), b.tails.Load())
	}
	if got := b.Stats().Folds.Bytes; got != sizes[0]+sizes[1]+sizes[2]+sizes[3]+sizes[4] {
		t.Errorf("%d bytes were folded of %d", got, sizes)
	}
	if s.meta.written != stored[4] {
		t.Errorf("%d bytes of log are left, not %d", s.meta.written, stored[4])
	}
	if err := log.Read(0, func(off storage.Offset, r storage.Record) error {
		if off < log.End()-20 {
			return fmt.Errorf("offset %d is still there", off)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func bases(u *unfolded, to storage.Offset) string {
	var all []string
	for _, b := range u.superseded(to, nil) {
		all = append(all, fmt.Sprint(b.base))
	}
	return strings.Join(all, " ")
}

func stepOf(text string) (recs []storage.Record, begins bool) {
	for word := range strings.FieldsSeq(text) {
		if word == "|" {
			begins = true
			continue
		}
		if word == "!" {
			recs = append(recs, storage.Record{Txn: storage.Txn{Kind: storage.Commit, Producer: 1}})
			continue
		}
		entity, key, _ := strings.Cut(word, ":")
		name := strings.TrimLeft(key, "-~")
		class := storage.Body
		if entity == "?" {
			class = storage.Orphan
		}
		r := storage.Record{Key: logtest.Key(class, entity, name), Value: []byte("v")}
		switch key[0] {
		case '-':
			r.Value = nil
		case '~':
			r.Txn = storage.Txn{Kind: storage.Pending, Producer: 1}
		}
		recs = append(recs, r)
	}
	return recs, begins
}
