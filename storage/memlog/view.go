package memlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kcoord/kcoord/storage"
)

// Load implements storage.Log.
func (l *Log) Load(entity []byte, visit func(storage.Offset, storage.Record) error) error {
	l.b.mu.Lock()
	if err := l.usable("load from"); err != nil {
		l.b.mu.Unlock()
		return err
	}
	var classes [2][]storage.Located
	shown := l.shard.shown()
	for _, r := range shown.latest {
		e, class := l.b.index(l.shard.id, r.Key)
		if class == storage.Orphan || r.Value == nil || !bytes.Equal(e, entity) {
			continue
		}
		classes[class] = append(classes[class], r.Located)
	}
	pending := shown.pendingOf(func(key []byte) bool {
		e, class := l.b.index(l.shard.id, key)
		return class != storage.Orphan && bytes.Equal(e, entity)
	})
	l.b.mu.Unlock()
	for _, recs := range classes {
		byKey(recs)
		if err := show(recs, visit); err != nil {
			return err
		}
	}
	return show(pending, visit)
}

// Entities implements storage.Log.
func (l *Log) Entities(visit func(entity []byte, headers []storage.Located, pending bool) error) error {
	l.b.mu.Lock()
	if err := l.usable("list the entities of"); err != nil {
		l.b.mu.Unlock()
		return err
	}
	headers, pending := map[string][]storage.Located{}, map[string]bool{}
	shown := l.shard.shown()
	for _, r := range shown.latest {
		e, class := l.b.index(l.shard.id, r.Key)
		if class == storage.Orphan || r.Value == nil {
			continue
		}
		hs := headers[string(e)]
		if class == storage.Header {
			hs = append(hs, storage.Located{Offset: r.Offset, Record: clone(r.Record)})
		}
		headers[string(e)] = hs
	}
	for k := range shown.pending {
		if e, class := l.b.index(l.shard.id, []byte(k.key)); class != storage.Orphan {
			headers[string(e)], pending[string(e)] = headers[string(e)], true
		}
	}
	l.b.mu.Unlock()
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	for _, name := range names {
		hs := headers[name]
		byKey(hs)
		entity := []byte(name)
		if err := visit(entity, hs, pending[name]); err != nil {
			return err
		}
		scribble(entity)
		for i := range hs {
			scribble(hs[i].Key)
			scribble(hs[i].Value)
		}
	}
	return nil
}

// Read implements storage.Log.
func (l *Log) Read(from storage.Offset, visit func(storage.Offset, storage.Record) error) error {
	l.b.mu.Lock()
	if err := l.usable("read"); err != nil {
		l.b.mu.Unlock()
		return err
	}
	recs := slices.Clone(l.shard.durableRecs())
	l.b.mu.Unlock()
	recs = slices.DeleteFunc(recs, func(r storage.Located) bool { return r.Offset < from })
	return show(recs, visit)
}

func byKey(recs []storage.Located) {
	slices.SortFunc(recs, func(a, b storage.Located) int { return bytes.Compare(a.Key, b.Key) })
}

// show visits copies and spoils them, since they are valid only during visit.
func show(recs []storage.Located, visit func(storage.Offset, storage.Record) error) error {
	for _, r := range recs {
		c := clone(r.Record)
		if err := visit(r.Offset, c); err != nil {
			return err
		}
		scribble(c.Key)
		scribble(c.Value)
	}
	return nil
}

func scribble(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}
