package kafka

import (
	"encoding/binary"
	"io"
)

// walk follows the structure of an answer that streams past. The bytes behind it
// that it has not yet let go lie in the buffer of in; what it lets go is written to
// out. So an answer of any size takes a buffer of some pages.
type walk struct {
	in    *frames
	out   io.Writer // nil: nothing is let go
	lead  []byte    // goes out before the first of it
	left  int       // bytes of the answer from in.r on
	at    int       // bytes of these that were walked over
	err   error
	until int // what may gather before it is let go
}

// more makes n bytes available behind those walked over, and returns them. They
// are valid until the next call. After an error it returns zeros.
func (w *walk) more(n int) []byte {
	if w.err == nil && n > w.left-w.at {
		w.err = errMismatch
	}
	if w.err == nil {
		var b []byte
		if b, w.err = w.in.ahead(w.at + n); w.err == nil {
			w.at += n
			return b[w.at-n:]
		}
	}
	return make([]byte, min(n, 16))
}

// walked are the bytes walked over and not let go.
func (w *walk) walked() []byte { return w.in.buf[w.in.r : w.in.r+w.at] }

// skip walks over n bytes that nobody looks at.
func (w *walk) skip(n int) {
	if w.err == nil && (n < 0 || n > w.left-w.at) {
		w.err = errMismatch
	}
	if w.out != nil && w.at >= w.until && w.err == nil {
		w.letGo(w.at)
	}
	if w.err != nil {
		return
	}
	there := w.in.w - w.in.r - w.at
	if w.out == nil || n <= there || w.at+n <= w.until {
		w.more(n)
		return
	}
	w.letGo(w.at + n)
}

// letGo writes the next n bytes of the answer, walked over or not.
func (w *walk) letGo(n int) {
	w.err = w.in.stream(w.out, w.lead, n)
	if w.lead = nil; w.err == nil {
		w.left -= n
		w.at = max(0, w.at-n)
	}
}

func (w *walk) int16() int16 { return int16(binary.BigEndian.Uint16(w.more(2))) }
func (w *walk) int32() int32 { return int32(binary.BigEndian.Uint32(w.more(4))) }

func (w *walk) uvarint() int {
	var v uint64
	for i := 0; i < 5 && w.err == nil; i++ {
		b := w.more(1)[0]
		if v |= uint64(b&0x7f) << (7 * i); b < 0x80 {
			if v > 1<<31-1 {
				break
			}
			return int(v)
		}
	}
	if w.err == nil {
		w.err = errMismatch
	}
	return 0
}

// size reads the length of a string or an array; -1 is null.
func (w *walk) size(flexible, str bool) int {
	switch {
	case flexible:
		return w.uvarint() - 1
	case str:
		return int(w.int16())
	}
	return int(w.int32())
}

// str walks over a string or bytes.
func (w *walk) str(flexible bool) { w.skip(max(w.size(flexible, true), 0)) }

// array walks over an array.
func (w *walk) array(flexible bool, element func()) {
	for n := w.size(flexible, false); n > 0 && w.err == nil; n-- {
		element()
	}
}

// tags walks over tagged fields.
func (w *walk) tags() {
	for n := w.uvarint(); n > 0 && w.err == nil; n-- {
		w.uvarint()
		w.skip(w.uvarint())
	}
}
