package kafka

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	raw   syscall.RawConn // of src, once present has asked for it
	act   *atomic.Uint64  // counts what moves: the sign of life of a connection
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
			usedUp(f.buf)
			f.buf = f.first[:]
		}
	}
	if f.w == len(f.buf) {
		from, to := f.buf, f.buf
		if f.w-f.r > len(f.buf)/2 {
			to = newBuffer(max(2*len(f.buf), usedBuffer))
		}
		f.w = copy(to, from[f.r:f.w])
		if f.buf, f.r = to, 0; len(to) > len(from) {
			usedUp(from)
		}
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

// done gives the buffer away: nothing is read any more.
func (f *frames) done() {
	usedUp(f.buf)
	f.buf, f.r, f.w = nil, 0, 0
}

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
		return int(n), tooLarge(b)
	}
	f.skip(4)
	return int(n), nil
}

// tooLarge says what else than a length the first four bytes may be.
func tooLarge(b []byte) error {
	switch {
	case b[0] == 0x16 && b[1] == 3: // a handshake, of SSL 3 or any TLS
		return errTLS
	case slices.Contains([]string{"GET ", "POST", "PUT ", "HEAD", "PRI "}, string(b[:4])): // PRI is HTTP/2
		return errHTTP
	}
	return errTooLarge
}

// writeError is one of the side that is streamed to, or of one of both that does not say which.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// restBuffers hold what of a frame has arrived behind the read buffer's end.
var restBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// stream writes lead and then n bytes to dst: those that are here in one write with
// lead, many past the buffer.
func (f *frames) stream(dst io.Writer, lead []byte, n int) error {
	for n > 0 || len(lead) > 0 {
		if f.r == f.w && len(lead) == 0 {
			if n > largeBuffer {
				// the kernel moves these from socket to socket
				got, err := io.CopyN(dst, f.src, int64(min(n, pastBuffer)))
				f.act.Add(1)
				switch n -= int(got); {
				case err == nil:
					continue
				case errors.Is(err, io.EOF):
					return err
				}
				return &writeError{err}
			}
			if err := f.fill(n); err != nil {
				return err
			}
		}
		got, err := f.writeHere(dst, lead, n)
		if err != nil {
			return &writeError{err}
		}
		n, lead = n-got, nil
	}
	return nil
}

// writeHere writes lead and those of the next n bytes that are here. Who reads dst is woken
// once for a frame that came as a whole, and not for each buffer's worth of it.
func (f *frames) writeHere(dst io.Writer, lead []byte, n int) (int, error) {
	b := f.buf[f.r:f.w]
	if len(b) > n {
		b = b[:n]
	}
	f.skip(len(b))
	if rest := n - len(b); rest > 0 && rest <= largeBuffer {
		more := restBuffers.Get().(*[largeBuffer]byte)
		defer restBuffers.Put(more)
		got := f.present(more[:rest])
		return len(b) + got, writeAll(dst, lead, b, more[:got])
	}
	return len(b), writeAll(dst, lead, b)
}

// writeAll writes some buffers, with one call where dst is a socket.
func writeAll(dst io.Writer, all ...[]byte) error {
	bufs := slices.DeleteFunc(net.Buffers(all), func(b []byte) bool { return len(b) == 0 })
	if len(bufs) == 1 {
		_, err := dst.Write(bufs[0])
		return err
	}
	_, err := bufs.WriteTo(dst)
	return err
}
