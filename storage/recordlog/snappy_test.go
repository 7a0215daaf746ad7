package recordlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

// TestSnappyOfKafka reads batches that Kafka's own builders compressed.
func TestSnappyOfKafka(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/fixtures/messagesets/*m2-snappy*.bin")
	if len(files) == 0 {
		t.Skip("no message sets in ../shared/fixtures: nothing to compare with")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Batches []struct {
				Records []struct{ Offset, Timestamp int64 }
			}
		}
		described, err := os.ReadFile(strings.TrimSuffix(name, ".bin") + ".json")
		if err == nil {
			err = json.Unmarshal(described, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want.Batches {
			b, err := Parse(data, 0)
			if err != nil {
				t.Fatalf("%s: batch %d: %v", name, i, err)
			}
			data = data[len(b.Bytes()):]
			plain, _, err := b.AppendPlain(nil)
			if err != nil {
				t.Fatalf("%s: batch %d: %v", name, i, err)
			}
			recs, err := all(&plain)
			if err != nil || len(recs) != len(w.Records) {
				t.Fatalf("%s: batch %d: %d records of %d: %v", name, i, len(recs), len(w.Records), err)
			}
			for j, r := range recs {
				if r.Offset != w.Records[j].Offset || r.Timestamp != w.Records[j].Timestamp {
					t.Errorf("%s: record %d/%d: offset %d at %d, want %+v", name, i, j, r.Offset, r.Timestamp, w.Records[j])
				}
			}
		}
	}
}

func TestSqueezeKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		b.Reset(rapid.Int64Range(0, 1<<40).Draw(t, "base"), storage.Txn{})
		text := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 40), rapid.Just([]byte(strings.Repeat("a group", 30))))
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			b.Append(text.Draw(t, "key"), text.Draw(t, "value"), rapid.Int64Range(0, 1<<41).Draw(t, "time"))
		}
		plain := bytes.Clone(b.Finish())
		squeezed := Squeeze([]byte("before"), plain)[len("before"):]
		if len(squeezed) > len(plain) {
			t.Fatalf("%d bytes became %d", len(plain), len(squeezed))
		}
		parsed, err := Parse(squeezed, 0)
		if err != nil {
			t.Fatal(err)
		}
		size, err := parsed.PlainSize()
		if err != nil || size != len(plain) {
			t.Fatalf("plain size %d of %d: %v", size, len(plain), err)
		}
		back, dst, err := parsed.AppendPlain([]byte("before"))
		if err != nil || !bytes.HasPrefix(dst, []byte("before")) {
			t.Fatal(err)
		}
		if got, want := back.Bytes()[atAttributes:], plain[atAttributes:]; !bytes.Equal(got, want) {
			t.Fatalf("got %x\nwant %x", got, want)
		}
		again, _, err := parsed.AppendPlain(make([]byte, 0, 10))
		if err != nil || !bytes.Equal(again.Bytes(), back.Bytes()) {
			t.Fatalf("into other memory: %v", err)
		}
	})
}

func TestDamagedSnappyIsCorrupt(t *testing.T) {
	var b Builder
	b.Reset(5, storage.Txn{})
	for range 100 {
		b.Append([]byte("a key that repeats"), []byte("a value that repeats"), 1)
	}
	squeezed := Squeeze(nil, b.Finish())
	for _, damage := range []func([]byte){
		func(d []byte) { d[HeaderSize] = 0 },                                   // no header of snappy-java
		func(d []byte) { d[HeaderSize+16] = 0x7f },                             // a block's length
		func(d []byte) { copy(d[HeaderSize+20:], "\xff\xff\xff\xff\x07") },     // its size when not compressed
		func(d []byte) { clear(d[HeaderSize+40 : len(d)-1]) },                  // its content
		func(d []byte) { copy(d[HeaderSize+20:], []byte{0xe8, 0x07, 0, 'x'}) }, // too short for its size
	} {
		data := bytes.Clone(squeezed)
		damage(data)
		h := readHeader(data)
		finish(data, &h) // the checksum is right: damage is found all the same
		b, err := Parse(data, 7)
		if err == nil {
			_, _, err = b.AppendPlain(nil)
		}
		if !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%x: %v", data[HeaderSize:HeaderSize+30], err)
		}
	}
}
