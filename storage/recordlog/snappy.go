package recordlog

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// Snappy is the compression that batches are stored with, where it saves
// anything: the same group and topic names stand in every record, so that its
// fast encoder costs less than writing and moving the bytes it takes out.
// Kafka's framing is that of snappy-java: a header, then blocks, each after its length.
const Snappy = 2

var snappyHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

const (
	squeezeFrom = 512 // bytes of records that are worth the call
	// mostSnappy is how far a block can swell: a copy of 64 bytes takes three.
	mostSnappy = 22
)

// Squeeze appends a batch, as Finish or Filter made it, with its records
// compressed; as it is where that saves nothing.
func Squeeze(dst, batch []byte) []byte {
	if out, saved := squeeze(dst, batch, readHeader(batch)); saved {
		return out
	}
	return append(dst, batch...)
}

// Squeeze completes the batch and appends it like the function of this name. The batch
// stays the builder's, which need not finish it: a checksum of either form is enough.
//
// REQUIRES: at least one record.
func (b *Builder) Squeeze(dst []byte) []byte {
	if b.h.Count > 0 {
		if out, saved := squeeze(dst, b.buf, b.h); saved {
			return out
		}
	}
	return append(dst, b.Finish()...)
}

// squeeze appends a batch of this header with its records compressed, unless that saves
// nothing. Of batch it reads the records alone.
func squeeze(dst, batch []byte, h Header) (out []byte, saved bool) {
	plain := batch[HeaderSize:]
	if len(plain) < squeezeFrom {
		return dst, false
	}
	start := len(dst)
	at := start + HeaderSize + len(snappyHeader) + 4
	if need := at + s2.MaxEncodedLen(len(plain)); cap(dst) < need {
		dst = append(make([]byte, 0, need), dst...)
	}
	block := s2.EncodeSnappy(dst[at:cap(dst)], plain)
	if len(block)+len(snappyHeader)+4 >= len(plain) {
		return dst[:start], false
	}
	dst = append(dst[:start], batch[:HeaderSize]...)
	dst = append(dst, snappyHeader...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
	dst = dst[:at+len(block)]
	h.Attributes |= Snappy
	finish(dst[start:], &h)
	return dst, true
}

// Compressed says whether the records are compressed: AppendPlain, then Iter.
func (b *Batch) Compressed() bool { return b.Attributes&CompressionMask != 0 }

// PlainSize is the size of the batch with its records not compressed. Of a
// codec that is not known it is ErrCompressed.
func (b *Batch) PlainSize() (int, error) {
	if !b.Compressed() {
		return len(b.data), nil
	}
	size := HeaderSize
	err := b.blocks(func(_ []byte, plain int) error {
		size += plain
		return nil
	})
	return size, err
}

// AppendPlain appends the batch with its records not compressed to dst, and
// returns it there. Its checksum is not brought up to date: nobody stores it.
func (b *Batch) AppendPlain(dst []byte) (Batch, []byte, error) {
	start := len(dst)
	plain := *b
	if !b.Compressed() {
		dst = append(dst, b.data...)
		plain.data = dst[start:len(dst):len(dst)]
		return plain, dst, nil
	}
	size, err := b.PlainSize()
	if err != nil {
		return plain, dst, err
	}
	if cap(dst)-start < size {
		dst = append(make([]byte, 0, start+size), dst...)
	}
	dst = append(dst, b.data[:HeaderSize]...)
	err = b.blocks(func(block []byte, size int) error {
		at := len(dst)
		dst = dst[:at+size]
		if _, err := s2.Decode(dst[at:], block); err != nil {
			return corrupt(b.pos, "snappy block: %v", err)
		}
		return nil
	})
	if err != nil {
		return plain, dst[:start], err
	}
	plain.Attributes &^= CompressionMask
	binary.BigEndian.PutUint16(dst[start+atAttributes:], uint16(plain.Attributes))
	binary.BigEndian.PutUint32(dst[start+atLength:], uint32(size-lengthCountsFrom))
	plain.data = dst[start:len(dst):len(dst)]
	return plain, dst, nil
}

// blocks visits the compressed blocks with their sizes when not compressed.
func (b *Batch) blocks(visit func(block []byte, plain int) error) error {
	if b.Attributes&CompressionMask != Snappy {
		return ErrCompressed
	}
	rest, framed := bytes.CutPrefix(b.data[HeaderSize:], snappyHeader)
	if !framed {
		return corrupt(b.pos, "snappy without its header")
	}
	for len(rest) > 0 {
		if len(rest) < 4 {
			return corrupt(b.pos, "length of a snappy block")
		}
		size := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if uint64(size) > uint64(len(rest)) {
			return corrupt(b.pos, "a snappy block of %d bytes where %d are left", size, len(rest))
		}
		block := rest[:size]
		rest = rest[size:]
		plain, err := s2.DecodedLen(block)
		if err == nil && plain > mostSnappy*len(block)+64 {
			err = fmt.Errorf("%d bytes are said to be %d", len(block), plain)
		}
		if err != nil {
			return corrupt(b.pos, "snappy block: %v", err)
		}
		if err := visit(block, plain); err != nil {
			return err
		}
	}
	return nil
}
