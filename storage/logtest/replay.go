package logtest

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/kcoord/kcoord/storage"
)

// replayed is what Kafka's coordinator has after it has read a log.
type replayed struct {
	latest  map[string]storage.Located           // by key
	by      map[string]storage.Offset            // key → the control record that its latest counts by
	pending map[int64]map[string]storage.Located // producer → key
}

func replay(recs []storage.Located) replayed {
	v := replayed{map[string]storage.Located{}, map[string]storage.Offset{}, map[int64]map[string]storage.Located{}}
	for _, r := range recs {
		key, p := string(r.Key), r.Txn.Producer
		switch {
		case r.Txn.Kind.Control():
			if r.Txn.Kind == storage.Commit {
				for key, was := range v.pending[p] {
					if l, has := v.latest[key]; !has || l.Offset < was.Offset {
						was.Txn = storage.Txn{}
						v.latest[key], v.by[key] = was, r.Offset
					}
				}
			}
			delete(v.pending, p)
		case r.Txn.Kind == storage.Pending && r.Value != nil:
			if v.pending[p] == nil {
				v.pending[p] = map[string]storage.Located{}
			}
			v.pending[p][key] = r
		default:
			r.Txn = storage.Txn{}
			v.latest[key] = r
			delete(v.by, key)
			for _, pending := range v.pending {
				if r.Value == nil {
					delete(pending, key)
				}
			}
		}
	}
	return v
}

// live are the offsets of what a log cannot do without: old tombstones, too.
func (v *replayed) live() map[storage.Offset]bool {
	live := map[storage.Offset]bool{}
	for key, r := range v.latest {
		live[r.Offset] = true
		if control, is := v.by[key]; is {
			live[control] = true
		}
	}
	for _, recs := range v.pending {
		for _, r := range recs {
			live[r.Offset] = true
		}
	}
	return live
}

// of are the live records of a class of an entity, by key.
func (v *replayed) of(entity string, class storage.Class) []storage.Located {
	var rs []storage.Located
	for _, r := range v.latest {
		e, c := Index(0, r.Key)
		if c == class && string(e) == entity && r.Value != nil {
			rs = append(rs, r)
		}
	}
	slices.SortFunc(rs, func(a, b storage.Located) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return rs
}

// pendingOf are the pending records of an entity, by offset.
func (v *replayed) pendingOf(entity string) []storage.Located {
	var rs []storage.Located
	for _, recs := range v.pending {
		for _, r := range recs {
			if e, c := Index(0, r.Key); c != storage.Orphan && string(e) == entity {
				rs = append(rs, r)
			}
		}
	}
	slices.SortFunc(rs, func(a, b storage.Located) int { return cmp.Compare(a.Offset, b.Offset) })
	return rs
}

// all is what is live or pending, orphans too.
func (v *replayed) all() (lines []string) {
	for _, r := range v.latest {
		if r.Value != nil {
			lines = append(lines, line(r.Offset, r.Record))
		}
	}
	for _, recs := range v.pending {
		for _, r := range recs {
			lines = append(lines, line(r.Offset, r.Record))
		}
	}
	slices.Sort(lines)
	return lines
}

func (v *replayed) load(entity string) []string {
	var lines []string
	for _, class := range []storage.Class{storage.Header, storage.Body} {
		for _, r := range v.of(entity, class) {
			lines = append(lines, line(r.Offset, r.Record))
		}
	}
	for _, r := range v.pendingOf(entity) {
		lines = append(lines, line(r.Offset, r.Record))
	}
	return lines
}

func (v *replayed) entities() []string {
	var lines []string
	names := slices.Clone(entityNames)
	slices.Sort(names)
	for _, name := range names {
		if len(v.load(name)) == 0 {
			continue
		}
		s := name + ":"
		for _, h := range v.of(name, storage.Header) {
			s += " " + line(h.Offset, h.Record)
		}
		if len(v.pendingOf(name)) > 0 {
			s += " pending"
		}
		lines = append(lines, s)
	}
	return lines
}

// ComesTo checks what a log shows, all of which is durable, when these records are what was
// ever appended to it: the same to who loads entities and to who reads it as Kafka does.
func ComesTo(t TB, log storage.Log, recs []storage.Located) {
	t.Helper()
	ever, read := replay(recs), replay(readAll(t, log))
	expect(t, "what is read comes to", read.all(), ever.all())
	for _, e := range entityNames {
		expectLoad(t, log, e, ever.load(e)...)
	}
	expectEntities(t, log, ever.entities()...)
}

func readAll(t TB, log storage.Log) (recs []storage.Located) {
	t.Helper()
	err := log.Read(0, func(off storage.Offset, rec storage.Record) error {
		rec.Key, rec.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
		recs = append(recs, storage.Located{Offset: off, Record: rec})
		return nil
	})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return recs
}
