package kafka

import "encoding/binary"

// header is a request's header: v1, or v2 with tags where the request is flexible.
type header struct {
	key, version int16
	correlation  int32
	clientID     []byte // in the frame
	size         int    // of the header itself
}

// A request's header starts with key, version, correlation id and the length of the client id.
const fixedHeader = 10

// parse reads what comes before tags, from at least fixedHeader bytes. It
// returns the size of that, which may be more than there is. A client id of any negative length is null, as in Kafka.
func (h *header) parse(b []byte) (size int) {
	h.key = int16(binary.BigEndian.Uint16(b))
	h.version = int16(binary.BigEndian.Uint16(b[2:]))
	h.correlation = int32(binary.BigEndian.Uint32(b[4:]))
	n := int(int16(binary.BigEndian.Uint16(b[8:])))
	h.size = fixedHeader + max(n, 0)
	if len(b) >= h.size {
		h.clientID = b[fixedHeader:h.size]
	}
	return h.size
}

// tags skips the tagged fields of a flexible header.
func (h *header) tags(b []byte) (whole bool, err error) {
	r := tagReader{b: b[h.size:]}
	for n := r.uvarint(); n > 0 && !r.short && !r.bad; n-- {
		r.uvarint()
		r.skip(r.uvarint())
	}
	if r.bad {
		return false, errMalformed
	}
	h.size += r.at
	return !r.short, nil
}

type tagReader struct {
	b          []byte
	at         int
	short, bad bool
}

func (r *tagReader) uvarint() uint32 {
	v, n := binary.Uvarint(r.b[r.at:])
	switch {
	case n == 0:
		r.short = true
		return 0
	case n < 0 || n > 5 || v > 1<<31-1:
		r.bad = true
		return 0
	}
	r.at += n
	return uint32(v)
}

func (r *tagReader) skip(n uint32) {
	if r.short = r.short || int64(n) > int64(len(r.b)-r.at); !r.short {
		r.at += int(n)
	}
}
