package pebblelog

import (
	"bytes"
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

// TestKeys: keys come apart as they were put together, sort by entity and then
// key, and lie within their own entity's prefix alone.
func TestKeys(t *testing.T) {
	name := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		id := storage.ShardID(rapid.Uint16().Draw(t, "shard"))
		class := storage.Class(rapid.IntRange(0, 1).Draw(t, "class"))
		e1, k1 := name.Draw(t, "entity"), name.Draw(t, "key")
		e2, k2 := name.Draw(t, "other entity"), name.Draw(t, "other key")
		r1, r2 := rowKey(nil, id, e1, class, k1), rowKey(nil, id, e2, class, k2)
		e, k, marker, err := splitRow(r1, nil)
		if err != nil || marker || !bytes.Equal(e, e1) || !bytes.Equal(k, k1) {
			t.Fatalf("%x came apart as %x %x %v %v", r1, e, k, marker, err)
		}
		want := cmp.Or(bytes.Compare(e1, e2), bytes.Compare(k1, k2))
		if got := bytes.Compare(r1, r2); got != want {
			t.Fatalf("%x and %x compare as %d, not %d", r1, r2, got, want)
		}
		prefix := entityKey(nil, id, r1[regionKeySize-1], e1)
		if bytes.HasPrefix(r2, prefix) != bytes.Equal(e1, e2) {
			t.Fatalf("%x has the prefix %x", r2, prefix)
		}
		if end := after(bytes.Clone(prefix)); bytes.Compare(r1, end) >= 0 || bytes.Compare(prefix, end) >= 0 {
			t.Fatalf("%x is not before %x", r1, end)
		}
		m := markerKey(nil, id, e1)
		if class == storage.Header && bytes.Compare(m, r1) >= 0 {
			t.Fatalf("the marker %x does not precede %x", m, r1)
		}
	})
}

// TestPendingKeys: they come apart as they were put together, and lie within
// their own entity's prefix.
func TestPendingKeys(t *testing.T) {
	name := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		id := storage.ShardID(rapid.Uint16().Draw(t, "shard"))
		class := storage.Class(rapid.IntRange(0, 2).Draw(t, "class"))
		entity, key, producer := name.Draw(t, "entity"), name.Draw(t, "key"), rapid.Int64().Draw(t, "producer")
		k := pendingKey(nil, id, entity, class, key, producer)
		at, err := splitPending(k, nil)
		if class == storage.Orphan {
			entity = nil
		}
		if err != nil || !bytes.Equal(at.entity, entity) || !bytes.Equal(at.key, key) || at.class != class || at.producer != producer {
			t.Fatalf("%x came apart as %+v, %v", k, at, err)
		}
		if !bytes.HasPrefix(k, entityKey(nil, id, regionPending, entity)) {
			t.Fatalf("%x is not within its entity %x", k, entity)
		}
		if n := rapid.IntRange(regionKeySize, len(k)-1).Draw(t, "cut"); n < len(k)-len(key) {
			if _, err := splitPending(k[:n], nil); err == nil {
				t.Fatalf("%x was taken apart", k[:n])
			}
		}
	})
}

func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := row{
			kind: rapid.SampledFrom([]byte{rowTombstone, rowValue, rowCommitted, rowPending}).Draw(t, "kind"), offset: rapid.Int64Range(0, 1<<61).Draw(t, "offset"),
			timestamp: rapid.Int64().Draw(t, "timestamp"),
		}
		switch r.kind {
		case rowCommitted:
			r.control = r.offset + rapid.Int64Range(1, 1<<61).Draw(t, "control")
		case rowPending:
			r.epoch = rapid.Int16().Draw(t, "epoch")
		}
		if r.kind != rowTombstone {
			r.value = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		b := make([]byte, r.size())
		r.put(b)
		got, err := parseRow(b)
		same := got.kind == r.kind && got.offset == r.offset && got.timestamp == r.timestamp && got.control == r.control && got.epoch == r.epoch
		if err != nil || !same || !bytes.Equal(got.value, r.value) || (got.value == nil) != (r.value == nil) {
			t.Fatalf("%+v became %+v, %v", r, got, err)
		}
		for n := range min(len(b), 3) {
			if _, err := parseRow(b[:n]); err == nil {
				t.Fatalf("%x was read", b[:n])
			}
		}
	})
}
