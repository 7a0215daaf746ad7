package groupmeta_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"pgregory.net/rapid"
)

// types are all known ones.
func types() (all []groupmeta.Type) {
	for typ := range groupmeta.Type(64) {
		if typ.KeyName() != "" {
			all = append(all, typ)
		}
	}
	return all
}

// drawKey is a random key of any type. There is no exported constructor by type, and only this test would want one.
func drawKey(t *rapid.T) groupmeta.Key {
	typ := rapid.SampledFrom(types()).Draw(t, "type")
	zero := append([]byte{byte(typ >> 8), byte(typ)}, make([]byte, 16)...) // empty strings, partition 0
	k, err := groupmeta.DecodeKey(zero)
	if err != nil {
		t.Fatal(err)
	}
	recordtest.Draw(t, k, false)
	return k
}

func TestKeysComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		b, err := k.AppendTo([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("before"):]
		got, err := groupmeta.DecodeKey(b)
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Fatalf("%x: %+v, %v, want %+v", b, got, err, k)
		}
		group, typ, err := groupmeta.GroupOfKey(b)
		if err != nil || string(group) != k.GroupID() || typ != k.Type() {
			t.Fatalf("group %q of %s, %v", group, typ, err)
		}
		for n := range b {
			if _, err := groupmeta.DecodeKey(b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes are read", n, len(b))
			}
		}
	})
}

// TestValuesComeBack: in every version, what was written reads as a value with the same fields (as far as the version
// has them, which is what its JSON shows) and writes the same bytes again; in the highest version it is equal.
func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types()).Draw(t, "type")
		highest := typ.HighestVersion()
		version := int16(rapid.IntRange(0, int(highest)+1).Draw(t, "version"))
		later := version > highest
		if typ == groupmeta.TypeLegacyOffsetCommit {
			version, later = 0, false
		}
		v := groupmeta.NewValue(typ)
		_, flexible := reflect.TypeOf(v).Elem().FieldByName("UnknownTags")
		multi := typ == groupmeta.TypeOffsetCommit || typ == groupmeta.TypeGroupMetadata
		recordtest.Draw(t, v, flexible && (!multi || version >= 4))
		b, err := v.AppendTo(nil, version)
		if err != nil {
			t.Fatal(err)
		}
		got, gotVersion, err := groupmeta.DecodeValue(typ, b)
		if err != nil || gotVersion != version {
			t.Fatalf("%x: version %d, %v", b, gotVersion, err)
		}
		if a, b := v.AppendJSON(nil, version), got.AppendJSON(nil, version); !bytes.Equal(a, b) {
			t.Fatalf("wrote\n%s, read\n%s", a, b)
		}
		if o, ok := v.(*groupmeta.OffsetCommitValue); ok && version != 1 {
			o.ExpireTimestamp = -1 // the only field that a later version dropped
		}
		if version >= highest && !reflect.DeepEqual(got, v) {
			t.Fatalf("wrote\n%+v, read\n%+v", v, got)
		}
		again, err := got.AppendTo(nil, version)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
		if got, _, err := groupmeta.DecodeValue(typ, append(b, 0)); (err != nil) != later {
			t.Fatalf("a byte after version %d: %+v, %v", version, got, err)
		}
		for n := range b {
			if _, _, err := groupmeta.DecodeValue(typ, b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes are read", n, len(b))
			}
		}
	})
}

func TestErrors(t *testing.T) {
	cases := []struct {
		name string
		typ  groupmeta.Type
		hex  string
		want string
	}{
		{"length", 1, "0003" + "0000000000000001" + "00000002" + "270f" + "61626364",
			"groupmeta: OffsetCommitValue v3: byte 14: metadata: length 9999 exceeds the 4 bytes left"},
		{"prefix", 1, "00", "groupmeta: OffsetCommitValue: byte 0: prefix: needs 2 bytes, has 1"},
		{"path", 2, "0000" + "0000" + "00000001" + "ffff" + "ffff" + "00000001" + "0000" + "0000" + "ffff" + "000000000000000000000000",
			"groupmeta: GroupMetadataValue v0: byte 20: members[0].clientHost: is null, which this field cannot be"},
		{"count", 2, "0000" + "0000" + "00000001" + "ffff" + "ffff" + "00000002" + "000000000000000000000000000000000000",
			"groupmeta: GroupMetadataValue v0: byte 12: members: 2 elements of at least 15 bytes exceed the 18 bytes left"},
		{"part", 5, "0000" + "00" + "00" + "01" + "01" + "01" + "00" + "00000000" + "00" + "01" + "0001" + "01" + "00000000" + "02" + "00" + "00" + "00",
			"groupmeta: ConsumerGroupMemberMetadataValue v0: byte 22: classicMemberMetadata.supportedProtocols[0].name: is null, which this field cannot be"},
		{"later", 1, "0005" + "0000000000000001" + "00000002" + "01" + "0000000000000001" + "00" + "ff",
			"groupmeta: OffsetCommitValue v5: byte 24: 1 bytes left over, so version 5 does not read as the highest known one"},
		{"frozen", 0, "0001" + "0000000000000001" + "0000" + "0000000000000001",
			"groupmeta: LegacyOffsetCommitValue: unknown version 1, the only ones are 0 to 0"},
		{"type", 9, "0000", "groupmeta: value: unknown record type 9"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := groupmeta.DecodeValue(c.typ, unhex(t, c.hex))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestWritingWhatDoesNotFit: nothing is dropped silently that Kafka would not drop, and nothing is written half.
func TestWritingWhatDoesNotFit(t *testing.T) {
	long := string(make([]byte, math.MaxInt16+1))
	dst := []byte("kept")
	v := groupmeta.NewOffsetCommitValue()
	v.Metadata = long
	for version := range int16(5) {
		if b, err := v.AppendTo(dst, version); err == nil || string(b) != "kept" {
			t.Errorf("v%d: %d bytes, %v", version, len(b), err)
		}
	}
	k := groupmeta.OffsetCommitKey{Group: "g", Topic: long}
	b, err := k.AppendTo(dst)
	var encodeErr *groupmeta.EncodeError
	if !errors.As(err, &encodeErr) || encodeErr.Field != "topic" || string(b) != "kept" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	v = groupmeta.NewOffsetCommitValue()
	v.TopicID = groupmeta.UUID{1}
	if _, err := v.AppendTo(nil, 3); err != nil {
		t.Errorf("topicId is ignorable: %v", err)
	}
	v.UnknownTags = v.UnknownTags.Append(7, []byte("from a later Kafka"))
	if _, err := v.AppendTo(nil, 3); err == nil {
		t.Error("unknown tagged fields were dropped")
	}
}

func TestTombstones(t *testing.T) {
	v, version, err := groupmeta.DecodeValue(groupmeta.TypeOffsetCommit, nil)
	if v != nil || version != -1 || err != nil {
		t.Errorf("null: %v, %d, %v", v, version, err)
	}
	if _, _, err := groupmeta.DecodeValue(groupmeta.TypeOffsetCommit, []byte{}); err == nil {
		t.Error("an empty value that is not null was read")
	}
}
