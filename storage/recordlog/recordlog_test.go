package recordlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden decodes what real brokers wrote and wants the same bytes back.
func TestGolden(t *testing.T) {
	const root = "../../../shared/fixtures/segments"
	files, _ := filepath.Glob(filepath.Join(root, "*", "__*", "*.log"))
	if len(files) == 0 {
		t.Skipf("no Kafka segments at %s: nothing to compare with", root)
	}
	batches, records, compressed, old := 0, 0, 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for pos := int64(0); pos < int64(len(data)); {
			if data[pos+atMagic] < 2 {
				old++
				break // message sets v0 and v1 are another decoder's
			}
			b, err := Parse(data[pos:], pos)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			recs, err := all(&b)
			switch {
			case errors.Is(err, ErrCompressed):
				compressed++
			case err != nil:
				t.Fatalf("%s: %v", name, err)
			default:
				if got := Encode(nil, b.Header, recs); !bytes.Equal(got, b.Bytes()) {
					t.Fatalf("%s at %d: encoded again\n got %x\nwant %x", name, pos, got, b.Bytes())
				}
				kept, err := b.Filter(nil, func(*Record) bool { return true })
				if err != nil || (len(recs) > 0 && !bytes.Equal(kept, b.Bytes())) {
					t.Fatalf("%s at %d: filtered by nothing: %v\n got %x\nwant %x", name, pos, err, kept, b.Bytes())
				}
				batches, records = batches+1, records+len(recs)
			}
			pos += int64(len(b.Bytes()))
		}
	}
	if batches == 0 {
		t.Fatalf("no uncompressed batch in %d segments", len(files))
	}
	t.Logf("%d segments: %d batches with %d records the same, %d compressed, %d older", len(files), batches, records, compressed, old)
}

// TestTransactionsAsKafkaWritesThem builds each transactional and control batch
// of a real broker's log from its records, and wants the same bytes.
func TestTransactionsAsKafkaWritesThem(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/fixtures/segments/4.4.0/__*/*.log")
	if len(files) == 0 {
		t.Skip("no Kafka segments: nothing to compare with")
	}
	pending, control := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for len(data) > 0 {
			b, err := Parse(data, 0)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			data = data[len(b.Bytes()):]
			if b.Plain() {
				continue
			}
			recs, err := all(&b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			txn, err := b.Txn(&recs[0])
			if err != nil || b.Plain() != (txn.Kind == storage.Plain) {
				t.Fatalf("%s: %+v is %+v: %v", name, b.Header, txn, err)
			}
			var build Builder
			build.Reset(b.BaseOffset, txn)
			build.h.LeaderEpoch = b.LeaderEpoch // the broker's to assign
			for _, r := range recs {
				key, value := r.Key, r.Value
				if txn.Kind.Control() {
					key, value = storage.AppendControl(nil, nil, txn.Kind, storage.CoordinatorEpoch(r.Value))
					control++
				} else {
					pending++
				}
				build.Append(key, value, r.Timestamp)
			}
			if got := build.Finish(); !bytes.Equal(got, b.Bytes()) {
				t.Fatalf("%s at offset %d:\n got %x\nwant %x", name, b.BaseOffset, got, b.Bytes())
			}
		}
	}
	if pending == 0 || control == 0 {
		t.Fatalf("%d records of transactions, %d control records", pending, control)
	}
}

func all(b *Batch) ([]Record, error) {
	var recs []Record
	it := b.Iter()
	for it.Next() {
		recs = append(recs, it.Record)
	}
	return recs, it.Err()
}

func build(base int64, kvs ...string) []byte {
	var b Builder
	b.Reset(base, storage.Txn{})
	for i := 0; i < len(kvs); i += 2 {
		var v []byte
		if kvs[i+1] != "nil" {
			v = []byte(kvs[i+1])
		}
		b.Append([]byte(kvs[i]), v, 1000+int64(i))
	}
	return b.Finish()
}

func TestBuilder(t *testing.T) {
	data := build(7, "a", "1", "b", "nil", "c", "")
	b, err := Parse(data, 0)
	if err != nil {
		t.Fatal(err)
	}
	recs, err := all(&b)
	if err != nil || len(recs) != 3 {
		t.Fatalf("%v %v", recs, err)
	}
	if recs[1].Value != nil || recs[2].Value == nil || recs[2].Offset != 9 || recs[2].Timestamp != 1004 {
		t.Fatalf("got %+v", recs)
	}
	if b.ProducerID != -1 || b.MaxTimestamp != 1004 || b.NextOffset() != 10 {
		t.Fatalf("got %+v", b.Header)
	}
}

func TestFilterKeepsOffsets(t *testing.T) {
	b, _ := Parse(build(10, "a", "1", "b", "2", "c", "3"), 0)
	data, err := b.Filter(nil, func(r *Record) bool { return r.Offset == 11 })
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data, 0)
	if err != nil {
		t.Fatal(err)
	}
	recs, err := all(&f)
	if err != nil || len(recs) != 1 || recs[0].Offset != 11 || string(recs[0].Key) != "b" {
		t.Fatalf("%+v %v", recs, err)
	}
	if f.BaseOffset != 10 || f.NextOffset() != 13 || f.MaxTimestamp != 1002 {
		t.Fatalf("got %+v", f.Header)
	}
	if none, err := b.Filter(nil, func(*Record) bool { return false }); err != nil || len(none) != 0 {
		t.Fatalf("nothing kept gives %d bytes, %v", len(none), err)
	}
}

// TestEveryByteIsChecked flips each bit: the batch must be refused, or differ
// only in the fields that stand outside of the checksum.
func TestEveryByteIsChecked(t *testing.T) {
	data := build(3, "key", "value", "other", "nil")
	for i := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << bit
			b, err := Parse(bad, 4711)
			if err == nil {
				if i < atLength || i >= atLeaderEpoch && i < atMagic {
					continue // base offset and leader epoch are the broker's to assign
				}
				t.Fatalf("bit %d of byte %d flipped and not noticed: %+v", bit, i, b.Header)
			}
			if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "4711") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

func TestCutShort(t *testing.T) {
	data := build(3, "key", "value")
	for n := range data {
		if _, err := Parse(data[:n], 9); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestLies gives batches with a right checksum and wrong contents.
func TestLies(t *testing.T) {
	rec := func(off int64, k string) []byte { return appendRecord(nil, 0, 0, off, []byte(k), nil, noHeaders) }
	cases := map[string]struct {
		h    Header
		body []byte
	}{
		"more records said": {Header{Count: 2, LastOffsetDelta: 1}, rec(0, "a")},
		"a huge count":      {Header{Count: 1 << 30, LastOffsetDelta: 1 << 30}, rec(0, "a")},
		"fewer said":        {Header{Count: 1, LastOffsetDelta: 1}, append(rec(0, "a"), rec(1, "b")...)},
		"negative count":    {Header{Count: -1}, rec(0, "a")},
		"offsets descend":   {Header{Count: 2, LastOffsetDelta: 1}, append(rec(1, "a"), rec(0, "b")...)},
		"offset past last":  {Header{Count: 1}, rec(1, "a")},
		"headers missing":   {Header{Count: 1}, appendRecord(nil, 0, 0, 0, []byte("a"), nil, nil)},
		"headers huge":      {Header{Count: 1}, appendRecord(nil, 0, 0, 0, []byte("a"), nil, []byte{0xfe, 0xff, 0xff, 0xff, 0x0f})},
		"record of no size": {Header{Count: 1}, []byte{0}},
	}
	for name, c := range cases {
		data := append(make([]byte, HeaderSize), c.body...)
		finish(data, &c.h)
		b, err := Parse(data, 12)
		if err == nil {
			_, err = all(&b)
		}
		if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "position 12") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	var b Builder
	key, value := make([]byte, 40), make([]byte, 60)
	fill := func() []byte {
		b.Reset(5, storage.Txn{})
		for i := range 10 {
			b.Append(key, value, int64(i))
		}
		return b.Finish()
	}
	fill()
	if n := testing.AllocsPerRun(100, func() { fill() }); n != 0 {
		t.Errorf("building a batch allocates %v times", n)
	}
	data := fill()
	if n := testing.AllocsPerRun(100, func() {
		b, err := Parse(data, 0)
		it := b.Iter()
		for it.Next() {
		}
		if err != nil || it.Err() != nil {
			t.Fatal(err, it.Err())
		}
	}); n > 1 { // the batch, which the iterator refers to
		t.Errorf("reading a batch allocates %v times", n)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nullable := func(name string) []byte {
			if rapid.Bool().Draw(t, name+" nil") {
				return nil
			}
			return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, name)
		}
		h := Header{
			BaseOffset: rapid.Int64Range(0, 1<<60).Draw(t, "base"), LeaderEpoch: rapid.Int32().Draw(t, "epoch"),
			Attributes:    int16(rapid.SampledFrom([]int{0, Transactional, Control | Transactional, DeleteHorizon}).Draw(t, "attributes")),
			BaseTimestamp: rapid.Int64Range(-1, 1<<50).Draw(t, "ts"), MaxTimestamp: rapid.Int64().Draw(t, "max"),
			ProducerID: rapid.Int64().Draw(t, "pid"), ProducerEpoch: rapid.Int16().Draw(t, "pe"), BaseSequence: rapid.Int32().Draw(t, "seq"),
		}
		var recs []Record
		off := h.BaseOffset
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			off += rapid.Int64Range(0, 3).Draw(t, "gap")
			recs = append(recs, Record{Offset: off, Timestamp: rapid.Int64Range(-1, 1<<50).Draw(t, "t"),
				Attributes: rapid.Int8().Draw(t, "a"), Key: nullable("k"), Value: nullable("v"), Headers: noHeaders})
			off++
		}
		h.LastOffsetDelta = int32(off - h.BaseOffset + rapid.Int64Range(0, 3).Draw(t, "tail"))
		data := Encode([]byte("before"), h, recs)[6:]
		b, err := Parse(data, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := all(&b)
		if err != nil {
			t.Fatal(err)
		}
		h.Count = int32(len(recs))
		if b.Header != h {
			t.Fatalf("header\n got %+v\nwant %+v", b.Header, h)
		}
		for i := range recs {
			g, w := got[i], recs[i]
			if g.Offset != w.Offset || g.Timestamp != w.Timestamp || g.Attributes != w.Attributes ||
				!bytes.Equal(g.Key, w.Key) || (g.Key == nil) != (w.Key == nil) ||
				!bytes.Equal(g.Value, w.Value) || (g.Value == nil) != (w.Value == nil) {
				t.Fatalf("record %d\n got %+v\nwant %+v", i, g, w)
			}
		}
	})
}

// FuzzParse wants no panic, and what is decoded to be encoded to the same bytes
// wherever the input was minimal.
func FuzzParse(f *testing.F) {
	f.Add(build(0, "a", "1"))
	f.Add(build(7, "a", "1", "b", "nil", "c", ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		// The fuzzer cannot guess checksums.
		if len(data) >= HeaderSize {
			h := readHeader(data)
			data = bytes.Clone(data)
			finish(data, &h)
		}
		b, err := Parse(data, 0)
		if err != nil {
			return
		}
		recs, err := all(&b)
		if err != nil {
			return
		}
		again, err := Parse(Encode(nil, b.Header, recs), 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := all(&again)
		if err != nil || len(got) != len(recs) {
			t.Fatalf("%d records became %d: %v", len(recs), len(got), err)
		}
		for i := range got {
			if got[i].Offset != recs[i].Offset || !bytes.Equal(got[i].Key, recs[i].Key) || !bytes.Equal(got[i].Value, recs[i].Value) {
				t.Fatalf("record %d: %+v became %+v", i, recs[i], got[i])
			}
		}
	})
}

func BenchmarkBuild10(b *testing.B) {
	var bl Builder
	key, value := make([]byte, 40), make([]byte, 60)
	b.ReportAllocs()
	for b.Loop() {
		bl.Reset(5, storage.Txn{})
		for i := range 10 {
			bl.Append(key, value, int64(i))
		}
		bl.Finish()
	}
}
