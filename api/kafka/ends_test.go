package kafka

import (
	"errors"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Whatever ends a connection, what was asked of us before is answered first: Kafka would not have looked at
// the request that ends it before that.
func TestAnsweredBeforeTheEnd(t *testing.T) {
	half := func(b []byte, n int) []byte { return b[:n] }
	metadata := headed(3, 9, make([]byte, 50)...)
	hangUp := func(t *testing.T, b *behindTest, _ *client) { <-b.came; b.conn(t).Close() }
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
	c.nc.Write(headed(3, 9, 0))
	nc := b.conn(t)
	nc.Write(answerTo(<-b.came, []byte("answer")))
	if _, _, err := c.raw(); err != nil {
		t.Fatal(err)
	}
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
