package kafka

import "sync"

// Answers gather up to flushAt bytes before they are written while more are ready.
const flushAt = 64 << 10

var outBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// role says who writes answers: one at a time, so that they go out in their order.
type role uint8

const (
	nobody role = iota
	theWriter
	theReader
)

// hand notes that a call is about to be handed over: should its answer come at once, the
// reader sees to it.
func (c *conn) hand(k *call) {
	c.mu.Lock()
	c.handing = k
	c.mu.Unlock()
}

// handed ends hand. An answer that is there already, as most are that need not become
// durable first, the reader writes itself: waking the writer would cost as much as the rest.
// Where more requests have arrived the writer does, for many at once.
func (c *conn) handed(k *call) {
	c.mu.Lock()
	c.handing = nil
	next := c.closed == nil && len(c.calls) > 0 && c.calls[0] == k && k.ready
	mine := next && c.writing == nobody && !c.in.more()
	if mine {
		c.writing = theReader
	} else if next {
		c.head.Signal()
	}
	c.mu.Unlock()
	if !mine {
		return
	}
	buf := outBuffers.Get().(*[]byte)
	c.put(k, buf)
	c.flush(buf)
	c.mu.Lock()
	c.writing = nobody
	c.mu.Unlock()
}

// put appends a call's answer to what is to be written.
func (c *conn) put(k *call, buf *[]byte) {
	at := len(*buf)
	*buf = k.encode(*buf)
	c.srv.m.response(k.api.key, len(*buf)-at)
	c.retire(k)
}

// write answers the calls in their order. All answers that are ready go out with
// one write.
func (c *conn) write() {
	defer close(c.writer)
	var buf *[]byte
	for {
		k, more := c.next(buf != nil)
		if !more {
			break
		}
		if k == nil || buf != nil && len(*buf) > flushAt {
			c.flush(buf)
			buf = nil
		}
		if k == nil {
			continue
		}
		if buf == nil {
			buf = outBuffers.Get().(*[]byte)
		}
		if !k.passed {
			c.put(k, buf)
			continue
		}
		if !c.relay(k, buf) {
			break
		}
		c.retire(k)
	}
	if buf != nil {
		c.flush(buf)
	}
}

// next returns the first call when it can be answered; nil when it cannot and there
// is something to write meanwhile. more is false at the end.
func (c *conn) next(pending bool) (k *call, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed != nil:
			return nil, false
		case len(c.calls) > 0 && c.calls[0].ready && c.writing != theReader:
			c.writing = theWriter
			return c.calls[0], true
		case pending:
			return nil, true
		case c.ending && len(c.calls) == 0:
			return nil, false
		}
		if c.writing == theWriter { // all is written
			c.writing = nobody
		}
		c.head.Wait()
	}
}

// flush writes what has gathered.
func (c *conn) flush(buf *[]byte) {
	if len(*buf) > 0 {
		if _, err := c.nc.Write(*buf); err != nil {
			c.close(errClientGone)
		}
		c.act.Add(1)
	}
	if cap(*buf) <= 2*flushAt {
		*buf = (*buf)[:0]
		outBuffers.Put(buf)
	}
}
