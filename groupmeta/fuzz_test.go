package groupmeta_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
)

// mostPerByte bounds what decoding allocates for a byte of input: an empty string of one byte costs a Go string's 16,
// an empty array in an array of structs up to 24.
const mostPerByte = 32

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzDecodeKey: no panic, no large allocation, and what is read comes back.
func FuzzDecodeKey(f *testing.F) {
	for _, l := range recordtest.Load(f, "testdata") {
		if record, key := l.Bytes(f); key != nil {
			f.Add(key)
		} else {
			f.Add(record)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		group, typ, groupErr := groupmeta.GroupOfKey(b)
		k, err := groupmeta.DecodeKey(b)
		if err != nil {
			return
		}
		if groupErr != nil || typ != k.Type() || string(group) != k.GroupID() {
			t.Fatalf("GroupOfKey: %q, %s, %v; DecodeKey: %q, %s", group, typ, groupErr, k.GroupID(), k.Type())
		}
		if n := recordtest.Footprint(k); n > 200+mostPerByte*len(b) {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		again, err := k.AppendTo(nil)
		if err != nil {
			t.Skip("a string that grew over 32767 bytes when its malformed UTF-8 was replaced")
		}
		got, err := groupmeta.DecodeKey(again)
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Fatalf("%+v became %+v, %v", k, got, err)
		}
	})
}

// FuzzDecodeValue is the same for values of every type.
func FuzzDecodeValue(f *testing.F) {
	for _, l := range recordtest.Load(f, "testdata") {
		record, key := l.Bytes(f)
		if typ, err := groupmeta.TypeOfKey(key); err == nil && record != nil {
			f.Add(int16(typ), record)
		}
	}
	f.Fuzz(func(t *testing.T, typ int16, b []byte) {
		if b == nil {
			return
		}
		v, version, err := groupmeta.DecodeValue(groupmeta.Type(typ), b)
		if err != nil {
			return
		}
		if n := recordtest.Footprint(v); n > 500+mostPerByte*len(b) {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		again, err := v.AppendTo(nil, version)
		if err != nil {
			t.Skip("a string that grew over 32767 bytes when its malformed UTF-8 was replaced")
		}
		got, gotVersion, err := groupmeta.DecodeValue(groupmeta.Type(typ), again)
		if err != nil || gotVersion != version || !reflect.DeepEqual(got, v) {
			t.Fatalf("v%d %+v became v%d %+v, %v", version, v, gotVersion, got, err)
		}
		if a, b := v.AppendJSON(nil, version), got.AppendJSON(nil, version); !bytes.Equal(a, b) {
			t.Fatalf("%s became %s", a, b)
		}
	})
}
