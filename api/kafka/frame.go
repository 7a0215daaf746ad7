package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
)

// Sizes of a connection's read buffer: what a silent connection holds, and what
// is let go again after a large request.
const (
	smallBuffer = 256
	usedBuffer  = 4 << 10 // once it has sent a request
	largeBuffer = 64 << 10
	pastBuffer  = 1 << 20
)

// frames reads length-prefixed requests. What it returns lies in its buffer and
// is valid until it is asked for more.
type frames struct {
	src   io.Reader
	act   *atomic.Uint64 // counts what moves: the sign of life of a connection
	buf   []byte
	r, w  int
	first [smallBuffer]byte
}

// ahead makes n bytes available and returns them, without consuming them. The
// buffer grows with what has arrived, never with what n promises.
func (f *frames) ahead(n int) ([]byte, error) {
	for f.w-f.r < n {
		if err := f.fill(n); err != nil {
			return nil, err
		}
	}
	return f.buf[f.r : f.r+n], nil
}

// fill reads once, having made room.
func (f *frames) fill(n int) error {
	switch {
	case f.buf == nil:
		f.buf = f.first[:]
	case f.r == f.w:
		f.r, f.w = 0, 0
		if n < smallBuffer && len(f.buf) > largeBuffer {
			f.buf = f.first[:]
		}
	}
	if f.w == len(f.buf) {
		to := f.buf
		if f.w-f.r > len(f.buf)/2 {
			to = make([]byte, max(2*len(f.buf), usedBuffer))
		}
		f.w = copy(to, f.buf[f.r:f.w])
		f.buf, f.r = to, 0
	}
	got, err := f.src.Read(f.buf[f.w:])
	f.w += got
	if got > 0 {
		f.act.Add(1)
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// more says whether something has arrived that was not consumed.
func (f *frames) more() bool { return f.r < f.w }

// skip consumes bytes that ahead returned.
func (f *frames) skip(n int) { f.r += n }

// size reads the length of the next request.
func (f *frames) size(limit int) (int, error) {
	b, err := f.ahead(4)
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(b))
	switch {
	case n <= 0:
		return int(n), errNegative
	case int(n) > limit:
		return int(n), errTooLarge
	}
	f.skip(4)
	return int(n), nil
}

// writeError is one of the side that is streamed to.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// stream writes lead and then n bytes to dst: those that are here in one write with
// lead, many past the buffer.
func (f *frames) stream(dst io.Writer, lead []byte, n int) error {
	for n > 0 || len(lead) > 0 {
		if f.r == f.w && len(lead) == 0 {
			if n > largeBuffer {
				// the kernel moves these from socket to socket
				got, err := io.CopyN(dst, f.src, int64(min(n, pastBuffer)))
				f.act.Add(1)
				if n -= int(got); err != nil {
					return err
				}
				continue
			}
			if err := f.fill(n); err != nil {
				return err
			}
		}
		b := f.buf[f.r:f.w]
		if len(b) > n {
			b = b[:n]
		}
		if err := writeBoth(dst, lead, b); err != nil {
			return &writeError{err}
		}
		f.skip(len(b))
		n, lead = n-len(b), nil
	}
	return nil
}

func writeBoth(dst io.Writer, lead, b []byte) error {
	if len(lead) == 0 || len(b) == 0 {
		if len(b) == 0 {
			b = lead
		}
		_, err := dst.Write(b)
		return err
	}
	bufs := net.Buffers{lead, b}
	_, err := bufs.WriteTo(dst)
	return err
}
