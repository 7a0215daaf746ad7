package recordbin

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reader reads one record's bytes. See the package's documentation for how it fails.
type Reader struct {
	b        []byte
	off      int
	flexible bool
	strict   bool

	failed    bool
	failOff   int
	failField string
	failWhy   string
}

// NewReader reads b after its two-byte prefix. flexible says whether lengths are compact (varints), strict whether the
// record must match to the byte.
//
// REQUIRES: len(b) >= 2, which [Prefix] has checked.
func NewReader(b []byte, flexible, strict bool) Reader {
	return Reader{b: b, off: 2, flexible: flexible, strict: strict}
}

// OK is false from the first failure on.
func (r *Reader) OK() bool { return !r.failed }

// Flexible says whether this version has compact lengths and tagged fields.
func (r *Reader) Flexible() bool { return r.flexible }

// Err is nil, or what went wrong first. A strict reader also counts bytes that nobody has read.
func (r *Reader) Err(pkg, record string, version int16) error {
	if r.strict && !r.failed && r.off < len(r.b) {
		r.fail("", fmt.Sprintf("%d bytes left over, so version %d does not read as the highest known one", len(r.b)-r.off, version))
	}
	if !r.failed {
		return nil
	}
	return &DecodeError{Package: pkg, Record: record, Version: version, Offset: r.failOff, Field: r.failField, Problem: r.failWhy}
}

// In names the array element in which the failure happened.
func (r *Reader) In(field string, i int) {
	path := fmt.Sprintf("%s[%d]", field, i)
	if r.failField != "" {
		path += "." + r.failField
	}
	r.failField = path
}

// Within names the struct in which a failure, if there was one, happened.
func (r *Reader) Within(field string) {
	if r.failed {
		r.failField = field + "." + r.failField
	}
}

func (r *Reader) left() int { return len(r.b) - r.off }

func (r *Reader) fail(field, why string) { r.failAt(r.off, field, why) }

// failAt is for failures that show after the field's first bytes were read.
func (r *Reader) failAt(off int, field, why string) {
	if !r.failed {
		r.failed, r.failOff, r.failField, r.failWhy = true, off, field, why
	}
}

func (r *Reader) failNull(off int, field string) {
	r.failAt(off, field, "is null, which this field cannot be")
}

func (r *Reader) short(field string, n int) {
	r.fail(field, fmt.Sprintf("needs %d bytes, %d are left", n, r.left()))
}

// take returns the next n bytes of the input itself, or nil after a failure.
func (r *Reader) take(field string, n int) []byte {
	if r.failed {
		return nil
	}
	if n > r.left() {
		r.short(field, n)
		return nil
	}
	b := r.b[r.off : r.off+n]
	r.off += n
	return b
}

// Int8 reads one byte.
func (r *Reader) Int8(field string) int8 {
	b := r.take(field, 1)
	if b == nil {
		return 0
	}
	return int8(b[0])
}

// Int16 reads two bytes, big endian as all of Kafka's integers.
func (r *Reader) Int16(field string) int16 { return int16(r.Uint16(field)) }

// Uint16 reads two bytes.
func (r *Reader) Uint16(field string) uint16 {
	b := r.take(field, 2)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint16(b)
}

// Int32 reads four bytes.
func (r *Reader) Int32(field string) int32 {
	b := r.take(field, 4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Int64 reads eight bytes.
func (r *Reader) Int64(field string) int64 {
	b := r.take(field, 8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// UUID reads sixteen bytes.
func (r *Reader) UUID(field string) UUID {
	b := r.take(field, 16)
	if b == nil {
		return UUID{}
	}
	return UUID(b)
}

// Uvarint reads an unsigned varint as Kafka does: at most five bytes, over-long ones accepted, and what the fifth byte
// has above 32 bits dropped.
func (r *Reader) Uvarint(field string) uint32 {
	if r.failed {
		return 0
	}
	var n uint32
	for i := range 5 {
		if r.off+i >= len(r.b) {
			r.fail(field, "varint is cut off")
			return 0
		}
		c := r.b[r.off+i]
		n |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.off += i + 1
			return n
		}
	}
	r.fail(field, "varint has more than 5 bytes")
	return 0
}

// length reads a length prefix; negative means null. Compact lengths are stored plus one and, as in Kafka, taken for
// signed 32-bit numbers.
func (r *Reader) length(field string, wide bool) int {
	switch {
	case r.flexible:
		return int(int32(r.Uvarint(field) - 1))
	case wide:
		return int(r.Int32(field))
	default:
		return int(r.Int16(field))
	}
}

// text returns the bytes of a string; ok is false for null and after a failure.
func (r *Reader) text(field string) (b []byte, ok bool) {
	at := r.off
	n := r.length(field, false)
	switch {
	case r.failed || n < 0:
		return nil, false
	case n > math.MaxInt16:
		r.failAt(at, field, fmt.Sprintf("length %d is over a string's limit of %d", n, math.MaxInt16))
		return nil, false
	case n > r.left():
		r.tooLong(at, field, n)
		return nil, false
	}
	return r.take(field, n), true
}

func (r *Reader) tooLong(at int, field string, n int) {
	r.failAt(at, field, fmt.Sprintf("length %d exceeds the %d bytes left", n, r.left()))
}

// String reads a string that must not be null.
func (r *Reader) String(field string) string {
	at := r.off
	b, ok := r.text(field)
	if !ok {
		r.failNull(at, field)
		return ""
	}
	return JavaString(b)
}

// Text is String without a copy: the result shares the input's memory unless it had to be repaired.
func (r *Reader) Text(field string) []byte {
	at := r.off
	b, ok := r.text(field)
	if !ok {
		r.failNull(at, field)
		return nil
	}
	return javaText(b)
}

// NullString reads a string that may be null.
func (r *Reader) NullString(field string) NullString {
	b, ok := r.text(field)
	if !ok {
		return NullString{}
	}
	return Some(JavaString(b))
}

// Bytes reads a byte array that must not be null, into memory of its own. An empty one is nil.
func (r *Reader) Bytes(field string) []byte {
	at := r.off
	n := r.length(field, true)
	switch {
	case r.failed:
		return nil
	case n < 0:
		r.failNull(at, field)
		return nil
	case n > r.left():
		r.tooLong(at, field, n)
		return nil
	}
	return append([]byte(nil), r.take(field, n)...)
}

// ArrayLen reads the number of elements of an array that must not be null. least is the fewest bytes an element can
// take (at least 1): a count that could not fit into the rest of the input is an error before anything is allocated
// for it.
func (r *Reader) ArrayLen(field string, least int) int {
	at := r.off
	n, null := r.NullArrayLen(field, least)
	if null {
		r.failNull(at, field)
	}
	return n
}

// NullArrayLen is ArrayLen for an array that may be null.
func (r *Reader) NullArrayLen(field string, least int) (n int, null bool) {
	at := r.off
	n = r.length(field, true)
	switch {
	case r.failed:
		return 0, false
	case n < 0:
		return 0, true
	case n > r.left()/least:
		r.failAt(at, field, fmt.Sprintf("%d elements of at least %d bytes exceed the %d bytes left", n, least, r.left()))
		return 0, false
	}
	return n, false
}
