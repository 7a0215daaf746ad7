package kafka

import "sync"

// Answers gather up to flushAt bytes before they are written while more are ready.
const flushAt = 64 << 10

var outBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

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
		if k.passed {
			if !c.relay(k, buf) {
				break
			}
		} else {
			at := len(*buf)
			*buf = k.encode(*buf)
			c.srv.m.response(k.api.key, len(*buf)-at)
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
		case len(c.calls) > 0 && c.calls[0].ready:
			return c.calls[0], true
		case pending:
			return nil, true
		case c.ending && len(c.calls) == 0:
			return nil, false
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
