package recordbin

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Writer appends one record to Buf. Like a Reader it fails once and is asked at the end.
type Writer struct {
	Buf      []byte
	flexible bool
	start    int
	failed   bool
	field    string
	why      string
}

// NewWriter appends to dst, beginning with the two-byte prefix: a key's record type or a value's version.
func NewWriter(dst []byte, prefix int16, flexible bool) Writer {
	start := len(dst)
	return Writer{Buf: append(dst, byte(prefix>>8), byte(prefix)), flexible: flexible, start: start}
}

// Result is the buffer, or on failure the buffer as it was before and the reason.
func (w *Writer) Result(pkg, record string, version int16) ([]byte, error) {
	if w.failed {
		return w.Buf[:w.start], &EncodeError{Package: pkg, Record: record, Version: version, Field: w.field, Problem: w.why}
	}
	return w.Buf, nil
}

// Flexible says whether this version has compact lengths and tagged fields.
func (w *Writer) Flexible() bool { return w.flexible }

// Fail makes Result return an error about field. The first failure stands.
func (w *Writer) Fail(field, why string) {
	if !w.failed {
		w.failed, w.field, w.why = true, field, why
	}
}

// NotInVersion fails because a field that would be lost is set.
func (w *Writer) NotInVersion(field string) {
	w.Fail(field, "is set, but this version has no such field")
}

// Int8 writes one byte.
func (w *Writer) Int8(v int8) { w.Buf = append(w.Buf, byte(v)) }

// Int16 writes two bytes.
func (w *Writer) Int16(v int16) { w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(v)) }

// Uint16 writes two bytes.
func (w *Writer) Uint16(v uint16) { w.Buf = binary.BigEndian.AppendUint16(w.Buf, v) }

// Int32 writes four bytes.
func (w *Writer) Int32(v int32) { w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(v)) }

// Int64 writes eight bytes.
func (w *Writer) Int64(v int64) { w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(v)) }

// UUID writes sixteen bytes.
func (w *Writer) UUID(v UUID) { w.Buf = append(w.Buf, v[:]...) }

// Uvarint writes the shortest varint.
func (w *Writer) Uvarint(v uint32) { w.Buf = binary.AppendUvarint(w.Buf, uint64(v)) }

// String writes a string of at most 32767 bytes.
func (w *Writer) String(field, s string) {
	if len(s) > math.MaxInt16 {
		w.Fail(field, fmt.Sprintf("%d bytes are over a string's limit of %d", len(s), math.MaxInt16))
		return
	}
	if w.flexible {
		w.Uvarint(uint32(len(s)) + 1)
	} else {
		w.Int16(int16(len(s)))
	}
	w.Buf = append(w.Buf, s...)
}

// NullString writes a string or null.
func (w *Writer) NullString(field string, s NullString) {
	switch {
	case s.Valid:
		w.String(field, s.String)
	case w.flexible:
		w.Uvarint(0)
	default:
		w.Int16(-1)
	}
}

// Bytes writes a byte array; nil is an empty one.
func (w *Writer) Bytes(field string, b []byte) {
	w.ArrayLen(field, len(b))
	w.Buf = append(w.Buf, b...)
}

// ArrayLen writes the number of elements that follow.
func (w *Writer) ArrayLen(field string, n int) {
	switch {
	case n > math.MaxInt32-1:
		w.Fail(field, fmt.Sprintf("%d is over the limit of elements", n))
	case w.flexible:
		w.Uvarint(uint32(n) + 1)
	default:
		w.Int32(int32(n))
	}
}

// NullArrayLen writes the number of elements that follow, or null, after which none may follow.
func (w *Writer) NullArrayLen(field string, n int, null bool) {
	switch {
	case !null:
		w.ArrayLen(field, n)
	case w.flexible:
		w.Uvarint(0)
	default:
		w.Int32(-1)
	}
}
