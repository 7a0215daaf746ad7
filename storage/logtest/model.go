package logtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

// model is a shard's log as a slice: what a backend must look like.
type model struct {
	recs []storage.Located
	end  storage.Offset
	// cleaned are records that were cleaned away, which a crash may undo, and
	// all is the log as if it had never been cleaned.
	cleaned, all []storage.Located
	// settled is up to where it is known to be durable, steps where the steps after that end.
	settled storage.Offset
	steps   []storage.Offset
}

func (m *model) append(recs []storage.Record) {
	for _, r := range recs {
		m.recs = append(m.recs, storage.Located{Offset: m.end, Record: r})
		m.all = append(m.all, storage.Located{Offset: m.end, Record: r})
		m.end++
	}
	m.steps = append(m.steps, m.end)
}

func (m *model) durable() { m.settled, m.steps = m.end, nil }

// cut is the crash: the log ends at the end of a step, and may have records
// again that had been cleaned away.
func (m *model) cut(end storage.Offset, back func(storage.Located) bool) {
	for _, r := range m.cleaned {
		if back(r) {
			m.recs = append(m.recs, r)
		}
	}
	m.cleaned = nil
	slices.SortFunc(m.recs, func(a, b storage.Located) int { return cmp.Compare(a.Offset, b.Offset) })
	lost := func(r storage.Located) bool { return r.Offset >= end }
	m.recs, m.all = slices.DeleteFunc(m.recs, lost), slices.DeleteFunc(m.all, lost)
	m.end = end
	m.durable()
}

func (m *model) clean(now time.Time) {
	v := replay(m.recs)
	live := v.live()
	for _, r := range v.latest {
		live[r.Offset] = r.Value != nil || !r.Time.Before(now.Add(-Retention))
	}
	m.recs = slices.DeleteFunc(m.recs, func(r storage.Located) bool {
		if !live[r.Offset] {
			m.cleaned = append(m.cleaned, r)
		}
		return !live[r.Offset]
	})
}

func (m *model) read(from storage.Offset) []string {
	v := replay(m.recs)
	live := v.live()
	var lines []string
	for _, r := range m.recs {
		switch l := line(r.Offset, r.Record); {
		case r.Offset < from:
		case live[r.Offset] || r.Txn.Kind != storage.Plain:
			lines = append(lines, l)
		default:
			lines = append(lines, superseded+l)
		}
	}
	return lines
}

var entityNames = []string{"", "a", "ab", "a\x00", "\xff", "z"}

// run is one shard under test beside its model.
type run struct {
	log   storage.Log
	told  *Durable
	model model
}

// testProperty applies any sequence of actions to a backend and to the model, on two shards.
func testProperty(t *testing.T, f Factory) {
	rapid.Check(t, func(t *rapid.T) {
		store := f(t)
		shards := []*run{{}, {}}
		openAll := func() {
			for id, r := range shards {
				r.log, r.told = open(t, store, storage.ShardID(id))
			}
		}
		openAll()
		pick := func(t *rapid.T) (*run, storage.ShardID) {
			id := rapid.IntRange(0, len(shards)-1).Draw(t, "shard")
			return shards[id], storage.ShardID(id)
		}
		var now time.Duration
		actions := map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				r, _ := pick(t)
				recs := drawStep(t, startTime.Add(now))
				r.told.Append(t, r.log, recs)
				r.model.append(recs)
			},
			"append the same again": func(t *rapid.T) {
				r, _ := pick(t)
				recs := drawAgain(t, startTime.Add(now))
				r.told.Append(t, r.log, recs)
				r.model.append(recs)
			},
			"append to a key, alone in its batch": func(t *rapid.T) {
				r, _ := pick(t)
				recs := []storage.Record{drawOne(t)}
				recs[0].Time = startTime.Add(now)
				r.told.Append(t, r.log, recs)
				r.model.append(recs)
				r.settle(t)
			},
			"wait": func(t *rapid.T) {
				r, _ := pick(t)
				r.settle(t)
			},
			"look": func(t *rapid.T) {
				r, _ := pick(t)
				r.settle(t)
				r.look(t)
			},
			"clean": func(t *rapid.T) {
				r, id := pick(t)
				r.settle(t)
				store.Clean(id, startTime.Add(now))
				r.model.clean(startTime.Add(now))
			},
			"reopen the shard": func(t *rapid.T) {
				r, id := pick(t)
				r.log, r.told = open(t, store, id)
				r.model.durable()
			},
			"time passes": func(*rapid.T) { now += Retention / 2 },
		}
		if store.Fold != nil {
			actions["fold"] = func(t *rapid.T) {
				_, id := pick(t)
				store.Fold(id)
			}
		}
		if store.Reopen != nil {
			actions["reopen the backend"] = func(*rapid.T) {
				store = store.Reopen()
				openAll()
				for _, r := range shards {
					r.model.durable()
				}
			}
		}
		if store.Crash != nil {
			actions["crash"] = func(t *rapid.T) {
				var acked []storage.Offset
				for _, r := range shards {
					acked = append(acked, r.told.End())
				}
				store = store.Crash()
				openAll()
				for i, r := range shards {
					r.crashed(t, acked[i])
				}
			}
		}
		actions[""] = func(t *rapid.T) {
			for _, r := range shards {
				if r.log.End() != r.model.end {
					t.Fatalf("the log ends at %d, the model at %d", r.log.End(), r.model.end)
				}
			}
		}
		t.Repeat(actions)
		for _, r := range shards {
			r.settle(t)
			r.look(t)
		}
	})
}

// AnyStep is a step of the kind that testProperty appends, the same for each seed.
func AnyStep(seed int) []storage.Record {
	return rapid.Custom(func(t *rapid.T) []storage.Record {
		switch rapid.IntRange(0, 3).Draw(t, "kind of step") {
		case 0:
			return []storage.Record{drawOne(t)}
		case 1:
			return drawAgain(t, startTime)
		}
		return drawStep(t, startTime)
	}).Example(seed)
}

// drawStep draws a step, with few keys and values so that they meet.
func drawStep(t *rapid.T, at time.Time) []storage.Record {
	var recs []storage.Record
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		kind := rapid.SampledFrom([]storage.TxnKind{
			storage.Plain, storage.Plain, storage.Plain, storage.Pending, storage.Pending, storage.Pending, storage.Commit, storage.Abort,
		}).Draw(t, "kind")
		producer, epoch := rapid.Int64Range(1, 2).Draw(t, "producer"), int16(rapid.IntRange(0, 1).Draw(t, "epoch"))
		if kind.Control() {
			r := end(producer, epoch, kind)
			r.Time = at
			recs = append(recs, r)
			continue
		}
		r := rec(
			storage.Class(rapid.IntRange(0, 2).Draw(t, "class")),
			rapid.SampledFrom(entityNames).Draw(t, "entity"),
			rapid.SampledFrom([]string{"", "k", "k\x00", "l"}).Draw(t, "key"),
			rapid.SampledFrom([]string{"nil", "", "v", "w"}).Draw(t, "value"))
		r.Time = at
		if kind == storage.Pending {
			r = in(producer, epoch, r)
		}
		recs = append(recs, r)
	}
	return recs
}

// drawAgain draws a step that writes one of a few sets of keys, as groups do that commit over and over.
func drawAgain(t *rapid.T, at time.Time) []storage.Record {
	entities := rapid.SampledFrom([][]string{{"a"}, {"z"}, {"a", "z"}}).Draw(t, "entities")
	keys := rapid.SampledFrom([][]string{{"k", "l"}, {"k"}, {"l", "k"}, {"", "k", "l"}}).Draw(t, "keys")
	values := rapid.SampledFrom([][]string{{"", "v", "w"}, {"v", "w"}, {"nil", "v"}}).Draw(t, "values")
	var recs []storage.Record
	for _, entity := range entities {
		for _, key := range keys {
			r := rec(storage.Body, entity, key, rapid.SampledFrom(values).Draw(t, "value"))
			r.Time = at
			recs = append(recs, r)
		}
	}
	return recs
}

// drawOne draws a record of the one key that is written all the time.
func drawOne(t *rapid.T) storage.Record {
	r := rec(storage.Body, "a", "k", rapid.SampledFrom([]string{"nil", "v"}).Draw(t, "value"))
	if producer := rapid.Int64Range(0, 2).Draw(t, "producer"); producer > 0 {
		return in(producer, 0, r)
	}
	return r
}

func (r *run) settle(t *rapid.T) {
	if len(r.model.steps) > 0 {
		r.told.Wait(t, r.model.end)
		r.model.durable()
	}
}

// look compares what is seen with the model: what Load and Entities give is what
// Kafka's coordinator would have, from what Read gives and from the log as it was
// before any cleaning.
func (r *run) look(t *rapid.T) {
	now, ever := replay(r.model.recs), replay(r.model.all)
	for _, e := range entityNames {
		expect(t, fmt.Sprintf("%q after cleaning", e), now.load(e), ever.load(e))
	}
	ComesTo(t, r.log, r.model.all)
	expectRead(t, r.log, 0, r.model.read(0)...)
	from := storage.Offset(rapid.Int64Range(0, int64(r.model.end)).Draw(t, "from"))
	expectRead(t, r.log, from, r.model.read(from)...)
}

// crashed checks what a crash left and lets the model follow it.
func (r *run) crashed(t *rapid.T, acked storage.Offset) {
	end := r.log.End()
	whole := end == r.model.settled || slices.Contains(r.model.steps, end)
	if !whole || end < acked {
		t.Fatalf("after the crash the log ends at %d: acknowledged up to %d, steps end at %v", end, acked, r.model.steps)
	}
	there := map[storage.Offset]bool{}
	if err := r.log.Read(0, func(off storage.Offset, _ storage.Record) error { there[off] = true; return nil }); err != nil {
		t.Fatalf("read after the crash: %v", err)
	}
	r.model.cut(end, func(rec storage.Located) bool { return there[rec.Offset] })
	expectRead(t, r.log, 0, r.model.read(0)...)
}
