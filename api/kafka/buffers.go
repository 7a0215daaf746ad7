package kafka

import (
	"math/bits"
	"sync"
)

// Buffers that grow do so from usedBuffer on by doubling, so that they are of few sizes and
// can be used again: those of large requests, and of connections that come and go, would be
// most of the garbage that is made.

// readBuffers hold those that nobody uses, by how often usedBuffer was doubled.
var readBuffers [11]sync.Pool

// class is which of readBuffers a buffer of this size is of; not ok: none.
func class(size int) (i int, ok bool) {
	i = bits.Len(uint(size)) - bits.Len(uint(usedBuffer))
	return i, i >= 0 && i < len(readBuffers) && size == usedBuffer<<i
}

func newBuffer(size int) []byte {
	if i, ok := class(size); ok {
		if b, used := readBuffers[i].Get().(*[]byte); used {
			return *b
		}
	}
	return make([]byte, size)
}

func usedUp(b []byte) {
	if i, ok := class(len(b)); ok {
		readBuffers[i].Put(&b)
	}
}

// Answers gather up to flushAt bytes before they are written while more are ready.
const flushAt = 64 << 10

// mostAnswer is how large a buffer of answers may be to be used again.
const mostAnswer = 8 << 20

// outBuffers hold answers, and largeOutBuffers those that were larger than most are.
var (
	outBuffers      = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}
	largeOutBuffers sync.Pool
)

// outBuffer returns one for an answer that may be of any size, or for ordinary ones.
func outBuffer(large bool) *[]byte {
	if large {
		if b, used := largeOutBuffers.Get().(*[]byte); used {
			return b
		}
	}
	return outBuffers.Get().(*[]byte)
}

func outBufferUsed(b *[]byte) {
	*b = (*b)[:0]
	switch size := cap(*b); {
	case size <= 2*flushAt:
		outBuffers.Put(b)
	case size <= mostAnswer:
		largeOutBuffers.Put(b)
	}
}
