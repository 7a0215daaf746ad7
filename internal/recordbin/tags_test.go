package recordbin

import (
	"bytes"
	"testing"
)

func TestUnknownTags(t *testing.T) {
	var u UnknownTags
	u = u.Append(1, []byte("one")).Append(300, nil).Append(5, bytes.Repeat([]byte("x"), 200))
	if u.Len() != 3 {
		t.Errorf("%d tags", u.Len())
	}
	var tags []uint32
	for tag, content := range u.All() {
		tags = append(tags, tag)
		if tag == 5 && len(content) != 200 {
			t.Errorf("tag 5 has %d bytes", len(content))
		}
	}
	if len(tags) != 3 || tags[0] != 1 || tags[1] != 300 || tags[2] != 5 {
		t.Errorf("tags %v, want the order in which they came", tags)
	}
	w := Writer{}
	if rest := w.UnknownBelow(u, 2); rest.Len() != 2 || string(w.Buf) != "\x01\x03one" {
		t.Errorf("below 2: %q, %d left", w.Buf, rest.Len())
	}
}

// TestUnknownTagsOfNonsense: a string from elsewhere may not make them panic or loop.
func TestUnknownTagsOfNonsense(t *testing.T) {
	for _, u := range []UnknownTags{"\xff", "\x01", "\x01\x05ab", "\xff\xff\xff\xff\xff\xff\xff", "\x01\xff\xff\xff\xff\x0f"} {
		n := 0
		for range u.All() {
			n++
		}
		if n != u.Len() || n > len(u) {
			t.Errorf("%q: %d tags, Len says %d", string(u), n, u.Len())
		}
	}
}

// TestEndTag: the size goes before the content, whatever its own length.
func TestEndTag(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 20000} {
		w := NewWriter([]byte("dst"), 0, true)
		content := bytes.Repeat([]byte{7}, n)
		mark := w.BeginTag(2)
		w.Buf = append(w.Buf, content...)
		w.EndTag(mark)
		want := appendTag([]byte("dst\x00\x00"), 2, content)
		if !bytes.Equal(w.Buf, want) {
			t.Errorf("%d bytes: %x, want %x", n, w.Buf, want)
		}
	}
}

func TestUvarint(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint32
		ok   bool
	}{
		{"\x00", 0, true},
		{"\x80\x00", 0, true}, // over-long
		{"\xff\xff\xff\xff\x0f", 1<<32 - 1, true},
		{"\xff\xff\xff\xff\x7f", 1<<32 - 1, true}, // the bits above 32 are dropped
		{"\xff\xff\xff\xff\x80", 0, false},
		{"\x80", 0, false},
		{"", 0, false},
	} {
		r := NewReader([]byte("\x00\x00"+c.in), true, false)
		if got := r.Uvarint("x"); got != c.want || r.OK() != c.ok {
			t.Errorf("%x: %d, %t", c.in, got, r.OK())
		}
	}
}
