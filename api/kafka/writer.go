package kafka

// kick has the calls answered that can be: by a goroutine that ends when there are no
// more, so that connections at rest cost one goroutine each and not two. REQUIRES mu.
func (c *conn) kick() {
	if c.closed == nil && !c.writing && len(c.calls) > 0 && c.calls[0].ready && c.calls[0] != c.handing {
		c.writing = true
		go c.write()
	}
}

// handed says that a call is handed over. An answer that is there already, as most are that need not become
// durable first, the reader writes itself: a writer would cost as much as the rest.
// Where more requests have arrived a writer does, for many at once.
func (c *conn) handed(k *call) {
	c.mu.Lock()
	c.handing = nil
	if c.draining && c.latest(k) && k.api.parks && !k.ready {
		k.abandon()
	}
	mine := c.closed == nil && !c.writing && len(c.calls) > 0 && c.calls[0] == k && k.ready && !c.in.more()
	if mine {
		c.writing = true
	} else {
		c.kick()
	}
	c.mu.Unlock()
	if !mine {
		return
	}
	buf := outBuffer(k.large())
	c.put(k, buf)
	c.flush(buf)
	c.written()
}

// written ends writing.
func (c *conn) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	c.kick()
	c.turn.Signal()
}

// rest waits until nobody writes, and, unless the connection is closed, nothing is left to be.
func (c *conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing || c.closed == nil && c.owes() {
		c.turn.Wait()
	}
}

// owes says whether the first call is going to be answered. When the broker's connection has ended,
// those that only it could answer are not, nor are those that may be parked. REQUIRES mu.
func (c *conn) owes() bool {
	if len(c.calls) == 0 {
		return false
	}
	k := c.calls[0]
	return k.ready || c.broken == nil || !k.passed && !k.api.parks
}

// put appends a call's answer to what is to be written.
func (c *conn) put(k *call, buf *[]byte) {
	at := len(*buf)
	*buf = k.encode(*buf)
	c.srv.m.response(k.api.key, len(*buf)-at)
	c.retire(k)
}

// write answers the calls in their order while they are ready. All that are go out
// with one write.
func (c *conn) write() {
	defer c.written()
	var buf *[]byte
	for {
		k := c.next()
		if buf != nil && (k == nil || len(*buf) > flushAt) {
			c.flush(buf)
			buf = nil
			continue // others may have become ready meanwhile
		}
		if k == nil {
			return
		}
		if buf == nil {
			buf = outBuffer(k.large())
		}
		if !k.passed {
			c.put(k, buf)
			continue
		}
		if !c.relay(k, buf) {
			return // and it is closed
		}
		c.retire(k)
	}
}

// next returns the first call when it can be answered, else nil.
func (c *conn) next() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil || len(c.calls) == 0 || !c.calls[0].ready {
		return nil
	}
	return c.calls[0]
}

// flush writes what has gathered. A client that is not there any more has its connection closed at once, unless records
// of a transaction are on their way: whether those are written the broker says, whoever asked.
func (c *conn) flush(buf *[]byte) {
	if len(*buf) > 0 {
		if _, err := c.nc.Write(*buf); err != nil && !c.awaitsRecords() {
			c.close(errClientGone)
		}
		c.act.Add(1)
	}
	outBufferUsed(buf)
}
