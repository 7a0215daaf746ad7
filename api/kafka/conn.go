package kafka

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kcoord/kcoord/internal/clienthost"
	"github.com/kcoord/kcoord/internal/recordbin"
)

// window is how many requests of a connection may be under way. A client that
// sends more, or does not read its answers, stops itself there.
const window = 128

// windowBytes bounds the same by what is held in memory for them: the bytes of requests,
// whose answers are some twenty times that at most. One alone may be larger. A request
// whose answer may be of any size counts as all of it.
const windowBytes = 64 << 10

// conn is one client's connection. Its reader (serve) owns in and hands calls
// over; its writer, which is there while something can be answered, answers them in
// order; its pump reads what the broker answers.
type conn struct {
	srv    *Server
	nc     net.Conn
	port   *port  // that it came to
	number uint64 // those accepted later have higher ones
	remote string // host:port
	host   string // as Kafka shows it: "/127.0.0.1"
	in     frames
	act    atomic.Uint64
	seen   lifesign // of Server.sweep

	// The latest strings of requests, since the next ones mostly hold the same.
	clientID, group, member string
	instance                *string

	turns turns // of transactional records; the reader's

	mu        sync.Mutex
	turn      sync.Cond // the reader waits for its turn, or for the end
	calls     []*call   // in order of requests
	forwarded int       // calls that the broker has not answered
	held      int       // the weight of calls; see windowBytes
	handing   *call     // the call that the reader hands over right now
	writing   bool      // somebody writes answers: one at a time, so that they go out in order
	draining  bool
	broken    error // the broker's connection has ended: what only the broker can answer is not waited for
	closed    error
	done      chan struct{} // closed with it
	up        *behind       // nil: nothing was passed on so far
}

func newConn(s *Server, nc net.Conn, p *port) *conn {
	c := &conn{srv: s, nc: nc, port: p, remote: nc.RemoteAddr().String(), done: make(chan struct{})}
	c.host = clienthost.Of(nc.RemoteAddr())
	c.turn.L = &c.mu
	return c
}

// serve reads requests until the connection ends.
func (c *conn) serve() {
	nc, err := secure(c.nc)
	if err == nil {
		c.mu.Lock()
		c.nc = nc
		c.mu.Unlock()
		c.in.src, c.in.act = nc, &c.act
		err = c.read()
	}
	c.finish(err)
	c.srv.ended(c, err)
}

func (c *conn) read() error {
	for {
		if err := c.ending(); err != nil {
			return err
		}
		n, err := c.in.size(c.srv.limits.Load().MaxRequestBytes)
		if err != nil {
			return c.readError(err, n)
		}
		if err := c.request(n); err != nil {
			return c.readError(err, n)
		}
	}
}

// readError tells apart the ends of a connection.
func (c *conn) readError(err error, size int) error {
	switch {
	case errors.Is(err, errNegative), errors.Is(err, errTooLarge), errors.Is(err, errMalformed),
		errors.Is(err, errVersion), errors.Is(err, errUnknownAPI), errors.Is(err, errRefused):
		return &badRequest{err, size}
	}
	if why := c.ending(); why != nil { // and err is what came of it
		return why
	}
	if errors.Is(err, errUpstream) || errors.Is(err, errSockets) {
		return err
	}
	return errors.Join(errClientGone, err)
}

// badRequest is a request that ends its connection.
type badRequest struct {
	error
	size int
}

func (e *badRequest) Unwrap() error { return e.error }

// request takes one request of n bytes.
func (c *conn) request(n int) error {
	var h header
	if err := c.header(&h, n); err != nil {
		return err
	}
	a := c.srv.table[h.key]
	switch {
	case a == nil:
		return &refused{errUnknownAPI, h.key, h.version}
	case h.key == 18 && (h.version > a.max || h.version < a.min): // answered in a version that all know
	case h.version < a.min || h.version > a.max:
		return &refused{errVersion, h.key, h.version}
	}
	if a.own() {
		return c.own(a, &h, n)
	}
	return c.pass(a, &h, n)
}

// refused says for which API and version a request was.
type refused struct {
	error
	key, version int16
}

func (e *refused) Unwrap() error { return e.error }

// header reads as much of a request of n bytes as its header needs.
func (c *conn) header(h *header, n int) error {
	if n < fixedHeader {
		return errMalformed
	}
	b, err := c.in.ahead(fixedHeader)
	if err != nil {
		return err
	}
	if h.parse(b) > n {
		return errMalformed
	}
	return nil
}

// gather reads a request, with its header to the end.
func (c *conn) gather(a *api, h *header, n int) ([]byte, error) {
	b, err := c.in.ahead(n)
	if err != nil {
		return nil, err
	}
	h.parse(b) // again, as the buffer may have moved
	if h.version >= a.flexible && h.version <= a.max {
		if whole, err := h.tags(b); err != nil || !whole {
			return nil, errMalformed
		}
	}
	return b, nil
}

// own gathers a request for us, and hands it over.
func (c *conn) own(a *api, h *header, n int) error {
	b, err := c.gather(a, h, n)
	if err != nil {
		return err
	}
	if c.clientID != string(h.clientID) {
		c.clientID = recordbin.JavaString(h.clientID)
	}
	weight := n
	if !a.pipelined {
		weight = windowBytes
	}
	k, err := c.begin(a, h, weight, false)
	if err != nil {
		return err
	}
	c.srv.m.request(a.key, k.version, n)
	if err := a.handle(k, b[h.size:]); err != nil {
		c.withdraw(k)
		return err
	}
	c.in.skip(n)
	c.handed(k)
	if a.pipelined {
		return nil
	}
	return c.await(k)
}

// begin gives a request its place in the order of answers, when its turn has come. One that is for us the reader now
// hands over: until handed nobody else touches it.
func (c *conn) begin(a *api, h *header, weight int, passed bool) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closed == nil && c.broken == nil && (len(c.calls) >= window || c.forwarded > 0 && !passed || c.held > 0 && c.held+weight > windowBytes) {
		c.turn.Wait()
	}
	if err := cmp.Or(c.closed, c.broken); err != nil {
		return nil, err
	}
	if c.draining && a.parks {
		return nil, errDrained
	}
	k := newCall()
	k.c, k.api, k.version, k.correlation, k.began, k.passed, k.weight = c, a, h.version, h.correlation, time.Now(), passed, weight
	c.held += weight
	if passed {
		c.forwarded++
	} else {
		c.handing = k
	}
	c.calls = append(c.calls, k)
	return k, nil
}

// withdraw takes back the latest call, whose request does not parse or did not come to its end. One that
// the broker has answered all the same is the writer's.
func (c *conn) withdraw(k *call) {
	c.mu.Lock()
	c.handing = nil
	var arrived func()
	if c.latest(k) && !k.ready {
		c.calls = c.calls[:len(c.calls)-1]
		c.held -= k.weight
		if k.passed {
			c.forwarded--
		}
		arrived, k.arrived = k.arrived, nil
	}
	c.mu.Unlock()
	if arrived != nil { // for it will not be
		arrived()
	}
}

// burden makes a call, which is not asked for yet, count as the whole window.
func (c *conn) burden(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held += max(windowBytes-k.weight, 0)
	k.weight = max(windowBytes, k.weight)
}

// latest says whether a call of the latest request is still there: else it was answered, and may be another connection's by
// now. REQUIRES mu.
func (c *conn) latest(k *call) bool {
	return len(c.calls) > 0 && c.calls[len(c.calls)-1] == k
}

// await waits until a call can be answered, or will not be.
func (c *conn) await(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closed == nil && c.latest(k) && !k.ready && !(c.broken != nil && k.api.parks) {
		c.turn.Wait()
	}
	return c.closed
}

// settle makes a call answerable. REQUIRES mu.
func (c *conn) settle(k *call) {
	k.ready = true
	c.kick()
	c.turn.Signal()
}

// retire takes away the first call, which was answered.
func (c *conn) retire(k *call) {
	c.srv.m.answered(k.api.key, time.Since(k.began))
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(c.calls, c.calls[1:])
	c.calls[n] = nil
	c.calls = c.calls[:n]
	c.held -= k.weight
	c.turn.Signal()
	if !k.abandoned {
		k.reset()
		calls.Put(k)
	}
}

// drain lets what is under way be answered and ends the connection then. What
// may be parked is not waited for: the client joins again wherever it finds the
// coordinator next. What is being handed over right now is left to handed.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for _, k := range c.calls {
		if k.api.parks && !k.ready && k != c.handing {
			k.abandon()
		}
	}
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // fails where the connection is closed already
}

// ending says why no more requests are taken; nil: they are.
func (c *conn) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return cmp.Or(c.closed, errDrained)
	}
	return cmp.Or(c.closed, c.broken)
}

// finish ends the connection. Requests before the one that ends it are answered first, as
// Kafka, which takes one after the other, would have done; and so are those of a client
// that has sent its last, since it may still read.
func (c *conn) finish(err error) {
	c.rest()
	c.close(err)
	c.rest()
	if c.up != nil {
		<-c.up.left
		c.up.in.done()
	}
	c.lostAll()
	c.in.done()
}

// close ends the connection at once.
func (c *conn) close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return
	}
	c.closed = err
	close(c.done)
	c.nc.Close()
	if c.up != nil {
		c.up.nc.Close()
	}
	c.turn.Broadcast()
}

// waits says whether the client waits for us rather than we for the client, or both for the
// broker, which would close a connection that is as silent.
func (c *conn) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) > 0 && !c.calls[0].ready && !c.calls[0].passed
}

// lifesign is when something last moved on a connection.
type lifesign struct {
	act uint64
	at  time.Time
}

// idle says whether nothing has moved for max.
func (c *conn) idle(now time.Time, most time.Duration) bool {
	if act := c.act.Load(); act != c.seen.act || c.seen.at.IsZero() || c.waits() {
		c.seen = lifesign{act, now}
	}
	return now.Sub(c.seen.at) >= most
}

// context ends with the server's patience.
func (c *conn) context() context.Context { return c.srv.ctx }

// intern returns b as a string, old where it is the same.
func intern(old string, b []byte) string {
	if old == string(b) {
		return old
	}
	return string(b)
}
