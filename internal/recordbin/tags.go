package recordbin

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// UnknownTags holds the tagged fields of one struct that the schema does not know, so that they are written back
// (KIP-915). It is their bytes, tag, size and content each, with varints of the shortest form, in the order read: as
// one string it costs no more than it took in the input, and keeps records comparable.
type UnknownTags string

// All iterates over tags and their content.
func (u UnknownTags) All() iter.Seq2[uint32, string] {
	return func(yield func(uint32, string) bool) {
		for u != "" {
			tag, content, rest := u.next()
			if !yield(tag, content) {
				return
			}
			u = rest
		}
	}
}

// Len is the number of tagged fields.
func (u UnknownTags) Len() int {
	n := 0
	for u != "" {
		_, _, u = u.next()
		n++
	}
	return n
}

// next splits off the first tagged field. What was not made by a Reader or by [UnknownTags.Append] ends at the first
// byte that makes no sense.
func (u UnknownTags) next() (tag uint32, content string, rest UnknownTags) {
	tag, n := uvarint(string(u))
	size, m := uvarint(string(u[n:]))
	body := u[n+m:]
	if uint64(size) > uint64(len(body)) {
		size = uint32(len(body))
	}
	return tag, string(body[:size]), body[size:]
}

// Append returns u with one more tagged field at its end.
func (u UnknownTags) Append(tag uint32, content []byte) UnknownTags {
	return UnknownTags(appendTag([]byte(u), tag, content))
}

func appendTag(dst []byte, tag uint32, content []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(tag))
	dst = binary.AppendUvarint(dst, uint64(len(content)))
	return append(dst, content...)
}

// uvarint returns a varint and the bytes it took, which is all of s where it is cut off.
func uvarint(s string) (uint32, int) {
	var n uint32
	for i := 0; i < len(s) && i < 5; i++ {
		n |= uint32(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, i + 1
		}
	}
	return n, min(len(s), 5)
}

// TagCount reads how many tagged fields follow; each takes at least two bytes.
func (r *Reader) TagCount() int {
	at := r.off
	n := r.Uvarint("tagged fields")
	if r.failed {
		return 0
	}
	if uint64(n) > uint64(r.left()/2) {
		r.failAt(at, "tagged fields", fmt.Sprintf("%d of them exceed the %d bytes left", n, r.left()))
		return 0
	}
	return int(n)
}

// Tag reads a tagged field's number and the size it claims.
func (r *Reader) Tag() (tag, size uint32) {
	return r.Uvarint("tag"), r.Uvarint("tag size")
}

// Offset is the position of the next byte, for EndTag.
func (r *Reader) Offset() int { return r.off }

// EndTag is called after a known tagged field that began at start. Kafka reads such a field by its type and never looks
// at the size; only a strict reader does.
func (r *Reader) EndTag(field string, start int, size uint32) {
	if r.strict && !r.failed && uint64(r.off-start) != uint64(size) {
		r.fail(field, fmt.Sprintf("tagged field has size %d but its content takes %d bytes", size, r.off-start))
	}
}

// UnknownTag adds the content of a tag that the schema does not know to u.
func (r *Reader) UnknownTag(u []byte, tag, size uint32) []byte {
	if r.failed {
		return u
	}
	if uint64(size) > uint64(r.left()) {
		r.fail("tagged field "+fmt.Sprint(tag), fmt.Sprintf("size %d exceeds the %d bytes left", size, r.left()))
		return u
	}
	return appendTag(u, tag, r.take("", int(size)))
}

// UnknownBelow writes the tagged fields at the head of u that come before the known tag next, and returns the others.
// Kafka wants tags in ascending order; tags that were read in another order stay in theirs.
func (w *Writer) UnknownBelow(u UnknownTags, next uint32) UnknownTags {
	for u != "" {
		tag, _, rest := u.next()
		if tag >= next {
			return u
		}
		w.Buf = append(w.Buf, u[:len(u)-len(rest)]...)
		u = rest
	}
	return u
}

// UnknownRest writes what UnknownBelow has left.
func (w *Writer) UnknownRest(u UnknownTags) { w.Buf = append(w.Buf, u...) }

// BeginTag starts a known tagged field and returns the mark that EndTag needs.
func (w *Writer) BeginTag(tag uint32) int {
	w.Uvarint(tag)
	return len(w.Buf)
}

// EndTag puts the size before the content written since BeginTag. The content moves by the size's one to five bytes,
// which is cheaper than walking it once before to learn its size.
func (w *Writer) EndTag(mark int) {
	size := len(w.Buf) - mark
	var head [binary.MaxVarintLen32]byte
	n := binary.PutUvarint(head[:], uint64(size))
	w.Buf = append(w.Buf, head[:n]...)
	copy(w.Buf[mark+n:], w.Buf[mark:mark+size])
	copy(w.Buf[mark:], head[:n])
}
