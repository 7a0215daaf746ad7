package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// behind is a client connection's own connection to the broker: what goes over
// it needs no rewriting, and its answers come in the order of the requests.
type behind struct {
	nc    net.Conn
	in    frames
	taken chan struct{} // the writer has taken the answer's body
	left  chan struct{} // closed when the pump has left
}

// peekBytes is how much of a request peek may want to see: Kafka's longest
// string, a transactional id, and what is around it.
const peekBytes = 64 << 10

// pass passes a request of n bytes on, as it is.
func (c *conn) pass(a *api, h *header, n int) error {
	what := passOn
	if a.peek != nil {
		var err error
		if what, err = c.peek(a, h, n); err != nil {
			return err
		}
		switch what {
		case answerHere:
			return c.own(a, h, n)
		case transactional:
			return c.passTransactional(a, h, n, passOn)
		case transactionalSilent:
			return c.passTransactional(a, h, n, passOnSilent)
		}
	}
	return c.passAs(a, h, n, what, nil)
}

// passAs passes a request on, byte for byte. p is what it is, where it is a transactional Produce.
func (c *conn) passAs(a *api, h *header, n int, what verdict, p *produced) error {
	c.srv.m.request(a.key, h.version, n)
	if c.up == nil {
		if err := c.connect(); err != nil {
			return err
		}
	}
	var k *call // nil: it has no answer
	if what == passOn {
		var err error
		if k, err = c.begin(a, h, 0, true); err != nil {
			return err
		}
		if p != nil {
			k.awaits(p)
		}
	}
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(n))
	err := c.in.stream(c.up.nc, size[:], n)
	if err != nil {
		c.withdraw(k) // the broker has half a request, which it will not answer
	}
	if _, ok := errors.AsType[*writeError](err); ok {
		return upstreamError(err)
	}
	return err
}

func upstreamError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUpstream, err)
}

// peek looks into the start of a request.
func (c *conn) peek(a *api, h *header, n int) (verdict, error) {
	need := min(n, h.size+256)
	if a.whole {
		need = n
	}
	for ; ; need = min(n, 2*need) {
		b, err := c.in.ahead(need)
		if err != nil {
			return 0, err
		}
		at := *h
		if at.parse(b) > len(b) {
			return 0, errMalformed
		}
		whole := true
		if h.version >= a.flexible {
			if whole, err = at.tags(b); err != nil {
				return 0, err
			}
		}
		if whole {
			if v, ok := a.peek(h.version, b[at.size:]); ok {
				return v, nil
			}
		}
		if need == n || need > peekBytes+h.size {
			return 0, errMalformed
		}
	}
}

// connect opens the connection to the broker and starts its pump.
func (c *conn) connect() error {
	if !c.srv.sockets.take() {
		return errSockets
	}
	nc, err := c.dial()
	if err != nil {
		c.srv.sockets.give()
		return upstreamError(err)
	}
	up := &behind{nc: nc, taken: make(chan struct{}), left: make(chan struct{})}
	up.in.src, up.in.act = nc, &c.act
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		nc.Close()
		c.srv.sockets.give()
		return c.closed
	}
	c.up = up
	go c.pump(up)
	return nil
}

// dial connects to the broker that the client's port stands for.
func (c *conn) dial() (net.Conn, error) {
	up := c.srv.o.Upstream
	if c.port.node < 0 {
		return up.Dial(c.context())
	}
	n := up.Node(c.port.node)
	if n == nil {
		return nil, fmt.Errorf("broker %d was not seen yet", c.port.node)
	}
	return n.Dial(c.context())
}

// lost says that the connection to the broker broke.
func (c *conn) lost() {
	if n := c.srv.o.Upstream.Node(c.port.node); n != nil {
		n.Lost()
	}
}

// pump reads the head of each answer of the broker, and leaves its body to the
// writer. It also notices when the broker hangs up, which ends the client's
// connection as it would have without us in between.
func (c *conn) pump(up *behind) {
	defer close(up.left)
	for {
		b, err := up.in.ahead(8)
		if err != nil {
			c.lost()
			c.lose(up, c.hungUp(err))
			return
		}
		size, correlation := int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))
		up.in.skip(8)
		written, expected := c.arrived(size, correlation)
		if !expected {
			c.lose(up, errMismatch)
			return
		}
		if written != nil {
			written()
		}
		select {
		case <-up.taken:
		case <-c.done:
			return
		}
	}
}

// lose says that the broker's connection has ended, and with it the client's: no more requests
// are taken, and who was asked something before is answered first.
func (c *conn) lose(up *behind, err error) {
	c.mu.Lock()
	c.broken = err
	up.nc.Close()                             // nothing is sent there any more
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // fails where the connection is closed already
	c.turn.Broadcast()
	c.mu.Unlock()
	c.lostAll() // now: who is answered first may be slow to read
}

// hungUp is the error of a broker that has ended the connection, as it does after
// connections.max.idle.ms and when it stops.
func (c *conn) hungUp(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, io.EOF) && c.forwarded == 0 {
		return errRested
	}
	return upstreamError(err)
}

// arrived makes the call answerable that the broker has answered, and returns whom else to tell.
func (c *conn) arrived(size, correlation int32) (written func(), expected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.passed && !k.ready {
			if size < 4 || k.correlation != correlation {
				return nil, false
			}
			if k.api.topics {
				c.srv.o.Upstream.Topics().Changed(k.api.deletes)
			}
			k.size = size
			c.forwarded--
			written, k.arrived = k.arrived, nil
			c.settle(k)
			return written, true
		}
	}
	return nil, false
}
