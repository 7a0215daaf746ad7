package kafka

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Whatever ends a connection, what was asked of us before is answered first: Kafka would not have looked at
// the request that ends it before that.
func TestAnsweredBeforeTheEnd(t *testing.T) {
	half := func(b []byte, n int) []byte { return b[:n] }
	metadata := headed(3, 9, make([]byte, 50)...)
	hangUp := func(t *testing.T, b *behindTest, _ *client) { <-b.came; b.conn(t).Close() }
	another := func(t *testing.T, b *behindTest, _ *client) { b.conn(t).Write(answerTo([]byte("....NONE"), nil)) }
	nothingMore := func(*testing.T, *behindTest, *client) {}
	x := "x"
	refused := produce(&x, records(&kmsg.InitProducerIDResponse{ProducerID: 5}, true), to("t", [16]byte{}, 0))
	refused.Version, refused.Acks = 11, 0
	sentAll := func(t *testing.T, _ *behindTest, c *client) {
		if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		sent []byte
		ends func(*testing.T, *behindTest, *client)
	}{
		"the broker hangs up":                   {metadata, hangUp},
		"the broker hangs up on what is silent": {headed(0, 3, 0xff, 0xff, 0, 0, 9), hangUp},
		"the broker hangs up on several":        {append(metadata, metadata...), hangUp},
		"half a request for the broker":         {half(metadata, 40), sentAll},
		"half a long one":                       {half(headed(1, 9, make([]byte, 1<<20)...), 300_000), sentAll},
		"half a silent one":                     {half(headed(0, 3, append([]byte{0xff, 0xff, 0, 0}, make([]byte, 500)...)...), 100), sentAll},
		"the broker answers something else":     {metadata, another},
		"a silent Produce is refused":           {frame(7, refused), nothingMore},
		"the broker cannot be reached":          {metadata, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nothing)
			s.topic("t")
			b := s.passOnTo()
			if tc.ends == nil {
				down := func() (net.Conn, error) { return nil, errors.New("refused") }
				s.passTo.Store(&down)
			}
			c := s.client()
			commit, after := commitOf(topicOf("t", [16]byte{}, 0)), beat("g")
			first, second := c.send(9, commit), c.send(4, after)
			waiting := []parked{<-s.coord.parked, <-s.coord.parked}
			if _, err := c.nc.Write(tc.sent); err != nil {
				t.Fatal(err)
			}
			if tc.ends != nil {
				tc.ends(t, b, c)
			}
			resp, _, _ := yes(waiting[0].req)
			waiting[0].reply(resp, nil)
			if got := recv[*kmsg.OffsetCommitResponse](c, first, commit); shownCommit(got) != "t 0:0; " {
				t.Error(shownCommit(got))
			}
			waiting[1].reply(kmsg.NewPtrHeartbeatResponse(), nil)
			recv[*kmsg.HeartbeatResponse](c, second, after)
			c.closed()
		})
	}
}

// What the broker has still to answer is waited for, too, when a client has sent its last and half a request.
func TestBrokerAnswersBeforeTheEnd(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	c.nc.Write(headed(3, 9, 0))
	req := <-b.came
	c.nc.Write(headed(3, 9, make([]byte, 50)...)[:40])
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.conn(t).Write(answerTo(req, []byte("answer")))
	if _, body, err := c.raw(); err != nil || string(body) != "answer" {
		t.Fatal(string(body), err)
	}
	c.closed()
}

// A join that is parked when the broker hangs up is not waited for: its client would not learn
// of the broker's end.
func TestParkedWhenTheBrokerHangsUp(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	nc := b.answered(t, c)
	c.send(9, joinOf("g"))
	p := <-s.coord.parked
	nc.Close()
	c.closed()
	p.reply(kmsg.NewPtrJoinGroupResponse(), nil)
}

// What comes behind a request on which the broker hangs up is not done.
func TestNothingAfterTheEnd(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	before := s.coord.count()
	c.nc.Write(append(headed(3, 9, 0), frame(7, func() kmsg.Request { r := beat("g"); r.SetVersion(4); return r }())...))
	<-b.came
	b.conn(t).Close()
	c.closed()
	if n := s.coord.count(); n != before {
		t.Errorf("%d requests were handed over", n-before)
	}
}

// A broker that goes while a client still sends it a long request is not taken for a client that has gone.
func TestBrokerGoesInTheMiddleOfARequest(t *testing.T) {
	s := newStage(t, nothing)
	here, there := net.Pipe() // whose errors are not those of sockets
	dial := func() (net.Conn, error) { return here, nil }
	s.passTo.Store(&dial)
	c := s.client()
	corr := c.send(4, beat("g"))
	p := <-s.coord.parked
	if _, err := c.nc.Write(headed(1, 9, make([]byte, 1<<20)...)[:300_000]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, there, 100_000); err != nil {
		t.Fatal(err)
	}
	there.Close()
	p.reply(kmsg.NewPtrHeartbeatResponse(), nil)
	recv[*kmsg.HeartbeatResponse](c, corr, beat("g"))
	c.closed()
	s.log.await(t, errUpstream.Error())
}

// arrived waits until the head of the broker's answer is here, whose turn has not come.
func (s *stage) arrived() {
	s.t.Helper()
	for late := time.After(20 * time.Second); ; {
		for _, c := range s.srv.connections() {
			c.mu.Lock()
			n := len(c.calls)
			here := n > 0 && c.calls[n-1].passed && c.calls[n-1].ready
			c.mu.Unlock()
			if here {
				return
			}
		}
		select {
		case <-late:
			s.t.Fatal("the broker's answer did not arrive")
		case <-time.After(time.Millisecond):
		}
	}
}

// A broker that answers half a request is answered for once, when its turn has come.
func TestAnswerToHalfARequest(t *testing.T) {
	s := newStage(t, nothing)
	b := s.passOnTo()
	c := s.client()
	corr := c.send(4, beat("g"))
	p := <-s.coord.parked
	half := headed(3, 9, make([]byte, 50)...)[:40]
	c.nc.Write(half)
	b.conn(t).Write(answerTo(half[4:], []byte("early")))
	s.arrived()
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.reply(kmsg.NewPtrHeartbeatResponse(), nil)
	recv[*kmsg.HeartbeatResponse](c, corr, beat("g"))
	if _, body, err := c.raw(); err != nil || string(body) != "early" {
		t.Fatal(string(body), err)
	}
	c.closed()
}

// What would have gone out in one write with an answer of the broker that turns out to be none goes out without it.
func TestAnsweredBeforeABrokenAnswer(t *testing.T) {
	garbage := bytes.Repeat([]byte{0xff}, 2*wholeAnswer)
	for name, tc := range map[string]struct {
		key, version int16
		answer       []byte
		gateway      bool
	}{
		"a short half":               {3, 9, answerTo(headed(3, 9)[4:], garbage[:100])[:50], false},
		"the head of a long one":     {3, 9, answerTo(headed(3, 9)[4:], garbage)[:8], false},
		"addresses do not parse":     {3, 9, answerTo(headed(3, 9)[4:], garbage[:100]), true},
		"a short one does not parse": {1, 16, answerTo(headed(1, 16)[4:], garbage[:100]), true},
		"a long one does not parse":  {1, 16, answerTo(headed(1, 16)[4:], garbage), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nothing, func(o *Options) {
				if tc.gateway {
					o.Gateway, _ = OpenGateway(Ports{}, Ports{}, o.Log)
				}
			})
			b := s.passOnTo()
			c := s.client()
			corr := c.send(4, beat("g"))
			p := <-s.coord.parked
			c.nc.Write(headed(tc.key, tc.version, 0))
			<-b.came
			nc := b.conn(t)
			nc.Write(tc.answer)
			nc.Close()
			s.arrived()
			p.reply(kmsg.NewPtrHeartbeatResponse(), nil)
			recv[*kmsg.HeartbeatResponse](c, corr, beat("g"))
			c.closed()
			s.log.await(t, "broker behind")
		})
	}
}

// Whoever ends a connection, the broker is not blamed: its connection ends for that.
func TestIdleWithABroker(t *testing.T) {
	s := newStage(t, yes, func(o *Options) { o.MaxIdle = 150 * time.Millisecond })
	var all []*client
	for range 30 {
		c := s.client()
		do[*kmsg.MetadataResponse](c, 9, kmsg.NewPtrMetadataRequest())
		all = append(all, c)
	}
	for _, c := range all {
		c.closed()
	}
	if err := <-s.shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if log := s.log.await(t, errIdle.Error()); strings.Contains(log, errUpstream.Error()) {
		t.Errorf("the log is\n%s", log)
	}
}
