package kafka

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/kcoord/kcoord/internal/recordbin"
)

// decoder reads the frequent requests without a heap object for each field. It
// never reads past the end: then it is bad, and what it returns is zero.
type decoder struct {
	b        []byte
	flexible bool
	bad      bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// uvarint reads a number or a length. For Kafka one beyond an int is negative, and so a null string, or no
// tagged fields: nobody sends such, and kmsg, which reads the other requests, takes it for malformed.
func (d *decoder) uvarint() int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 5 || v > math.MaxInt32 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

// size reads the length of a string. Any that is negative is null, as in Kafka.
func (d *decoder) size() int {
	if d.flexible {
		return d.uvarint() - 1
	}
	if b := d.take(2); b != nil {
		return int(int16(binary.BigEndian.Uint16(b)))
	}
	return 0
}

// nullable reads a string, as readRequest does; nil is null.
func (d *decoder) nullable() []byte {
	n := d.size()
	if d.bad || n < 0 {
		return nil
	}
	b := d.take(n)
	if !utf8.Valid(b) {
		b = []byte(recordbin.JavaString(b))
	}
	if len(b) > longest {
		d.bad, d.b, b = true, nil, nil
	}
	return b
}

// str reads a string that must not be null.
func (d *decoder) str() []byte {
	b := d.nullable()
	if b == nil {
		d.bad = true
	}
	return b
}

// length reads that of an array whose elements take at least size bytes.
func (d *decoder) length(size int) int {
	n, null := d.lengthOrNull(size)
	d.bad = d.bad || null
	return n
}

// lengthOrNull is length for an array that may be null.
func (d *decoder) lengthOrNull(size int) (n int, null bool) {
	if d.flexible {
		n = d.uvarint() - 1
	} else {
		n = int(d.int32())
	}
	switch {
	case d.bad:
		return 0, false
	case n < 0:
		return 0, true
	case n > len(d.b)/size:
		d.bad = true
		return 0, false
	}
	return n, false
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// tags skips tagged fields: none is known in what this reads.
func (d *decoder) tags() {
	if !d.flexible {
		return
	}
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		d.uvarint()
		d.take(d.uvarint())
	}
}

// internPtr reads a nullable string, and returns old where it is the same.
func internPtr(old *string, d *decoder) *string {
	b := d.nullable()
	if b == nil {
		return nil
	}
	if old != nil && *old == string(b) {
		return old
	}
	s := string(b)
	return &s
}
