package kafka

import (
	"encoding/binary"
	"errors"
)

// Answers of the broker.
const (
	shortAnswer = 16 << 10 // up to this they are gathered with others
	wholeAnswer = 64 << 10 // up to this they are gathered to be rewritten
	walkedChunk = 32 << 10 // longer ones are rewritten as they stream past, in such pieces
)

// relay hands the broker's answer on.
func (c *conn) relay(k *call, buf *[]byte) bool {
	n := int(k.size) - 4
	before := len(*buf)
	var err error
	switch {
	case k.produced != nil:
		err = c.relayProduced(k, buf, n)
	case c.srv.o.Gateway == nil || !rewritten(k.api.key, k.version):
		*buf = k.appendHead(*buf, n)
		err = c.pour(buf, n)
	case k.api.key == 3 || k.api.key == 60:
		err = c.relayHead(k, buf, n)
	case n <= wholeAnswer:
		err = c.relayWhole(k, buf, n)
	default:
		err = c.relayWalked(k, buf, n)
	}
	if err != nil {
		*buf = (*buf)[:min(before, len(*buf))] // the answers before this one are whole
		c.flush(buf)
		c.close(relayError(err))
		return false
	}
	c.srv.m.response(k.api.key, int(k.size)+4)
	select {
	case c.up.taken <- struct{}{}:
	case <-c.done:
	}
	return true
}

// relayError tells who has ended the connection in the middle of an answer.
func relayError(err error) error {
	if _, ok := errors.AsType[*writeError](err); ok {
		return errors.Join(errClientGone, err)
	}
	if errors.Is(err, errMismatch) {
		return err
	}
	return upstreamError(err)
}

// appendHead appends the head of an answer whose body has n bytes.
func (k *call) appendHead(out []byte, n int) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(n+4))
	return binary.BigEndian.AppendUint32(out, uint32(k.correlation))
}

// pour hands n bytes on as they are: into buf where they are few, else past it.
func (c *conn) pour(buf *[]byte, n int) error {
	if n <= shortAnswer {
		b, err := c.up.in.ahead(n)
		*buf = append(*buf, b...)
		c.up.in.skip(len(b))
		return err
	}
	err := c.up.in.stream(c.nc, *buf, n)
	*buf = (*buf)[:0]
	return err
}

// relayHead rewrites an answer that has the addresses near its start.
func (c *conn) relayHead(k *call, buf *[]byte, n int) error {
	w := &walk{in: &c.up.in, left: n}
	at := len(*buf)
	*buf = c.brokersHead(k, w, k.appendHead(*buf, 0))
	if w.err != nil {
		return w.err
	}
	rest := n - w.at
	binary.BigEndian.PutUint32((*buf)[at:], uint32(len(*buf)-at-4+rest))
	c.up.in.skip(w.at)
	return c.pour(buf, rest)
}

// relayWhole rewrites a short answer that has the addresses at its end.
func (c *conn) relayWhole(k *call, buf *[]byte, n int) error {
	w := &walk{in: &c.up.in, left: n}
	if _, err := c.up.in.ahead(n); err != nil {
		return err
	}
	toTags(k, w)
	if w.err != nil {
		return w.err
	}
	at, tagsAt := len(*buf), w.at
	tags := c.endpoints(w)
	if w.err != nil {
		return w.err
	}
	if len(tags) == 0 { // byte for byte, however the broker writes it
		tagsAt = n
	}
	*buf = append(k.appendHead(*buf, 0), w.walked()[:tagsAt]...)
	if len(tags) > 0 {
		*buf = appendTags(*buf, tags)
	}
	binary.BigEndian.PutUint32((*buf)[at:], uint32(len(*buf)-at-4))
	c.up.in.skip(n)
	return nil
}

// relayWalked rewrites a long one, whose length stays as it is.
func (c *conn) relayWalked(k *call, buf *[]byte, n int) error {
	w := &walk{in: &c.up.in, left: n, out: c.nc, lead: k.appendHead(*buf, n), until: walkedChunk}
	if toTags(k, w); w.err == nil {
		w.letGo(w.at)
	}
	if w.lead == nil {
		*buf = (*buf)[:0]
	}
	w.out = nil
	tags := c.endpoints(w)
	if w.err != nil {
		return w.err
	}
	end := w.walked()
	if len(tags) > 0 {
		end = fitTags(tags, w.left)
	}
	c.up.in.skip(w.left)
	if _, err := c.nc.Write(end); err != nil {
		return &writeError{err}
	}
	return nil
}
