package kafka

import (
	"net"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// ways counts the records that have set out and arrived.
type ways struct {
	Transactions
	out, in chan struct{}
}

func (w *ways) ProduceInTxn(req txn.Request, p txn.Producer, reply func(txn.Response, func(), error)) {
	w.Transactions.ProduceInTxn(req, p, func(resp txn.Response, arrived func(), err error) {
		w.out <- struct{}{}
		reply(resp, func() { arrived(); w.in <- struct{}{} }, err)
	})
}

// withWays puts a real coordinator whose ways are counted behind a stage.
func withWays(t *testing.T) (*stage, *ways) {
	t.Helper()
	s := withNode(t, towardsKafka)
	w := &ways{s.srv.o.Transactions, make(chan struct{}, 9), make(chan struct{}, 9)}
	s.srv.o.Transactions = w
	return s, w
}

// Whatever becomes of a transactional Produce, its producer's markers go out at last.
func TestProduceArrives(t *testing.T) {
	s, w := withWays(t)
	id, c, x := s.topic("t"), s.client(), "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	for _, v := range []int16{12, 11} { // as it is, and in another shape
		do[*kmsg.ProduceResponse](c, v, produce(&x, records(p, true), to("t", id, 0)))
		<-w.out
		<-w.in
	}
	if at := do[*kmsg.ProduceResponse](c, 11, produce(&x, records(p, true), to("t", id, 1))).Topics[0].Partitions[0]; at.ErrorCode != 120 {
		t.Errorf("%+v", at)
	}
	<-w.out
	<-w.in // refused
	silent := produce(&x, records(p, true), to("t", id, 0))
	silent.Acks = 0
	c.send(12, silent)
	<-w.out
	<-w.in // nobody will say that it is written
	b.silence()
	groups := newRecorder(nothing)
	s.srv.o.Coordinator = groups
	for _, v := range []int16{11, 12} {
		c = s.client()
		before := c.send(4, beat("g"))
		slow := <-groups.parked // has the connection live on
		c.send(v, produce(&x, records(p, true), to("t", id, 0)))
		<-w.out
		<-b.came
		select {
		case <-w.in:
			t.Errorf("v%d: told before the broker has answered", v)
		default:
		}
		b.hangUp()
		<-w.in
		slow.reply(kmsg.NewPtrHeartbeatResponse(), nil)
		recv[*kmsg.HeartbeatResponse](c, before, beat("g"))
		c.closed()
	}
}

// A client that resets its connection does not take away what tells whether its records are written, not even when an
// earlier answer cannot be written any more.
func TestProduceArrivesAfterAReset(t *testing.T) {
	s, w := withWays(t)
	id, c, x := s.topic("t"), s.client(), "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	b.silence()
	groups := newRecorder(nothing)
	s.srv.o.Coordinator = groups
	for range 2 { // what was written before is no obstacle
		c = s.client()
		remote := c.nc.LocalAddr().String()
		c.send(4, beat("g"))
		slow := <-groups.parked
		c.send(12, produce(&x, records(p, true), to("t", id, 0)))
		<-w.out
		<-b.came
		if err := c.nc.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.nc.Close()
		here := slices.DeleteFunc(s.srv.connections(), func(c *conn) bool { return c.remote != remote })
		moved := here[0].act.Load()
		slow.reply(kmsg.NewPtrHeartbeatResponse(), nil)
		for here[0].act.Load() == moved { // until the answer could not be written
			runtime.Gosched()
		}
		if err := here[0].ending(); err != nil {
			t.Errorf("ended before the broker has answered: %v", err)
		}
		b.hangUp()
		<-w.in
	}
}
