package demo

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	workGroup   = "invoicing"
	output      = "invoices"
	perWork     = 60              // records in a transaction
	workSession = 3 * time.Second // after which others get a dead worker's partitions
)

// worker makes an invoice of each order, exactly once: the invoices and the offsets
// of their orders are one transaction.
type worker struct {
	name    string
	address string
	timeout time.Duration // of its transactions

	mu        sync.Mutex
	session   *kgo.GroupTransactSession
	lastStand standing
	conns     []net.Conn
	committed int
	dieAt     int // at the end of which transaction it is cut off; 0: never
	failed    error

	end  context.CancelFunc
	dead chan struct{}
	done sync.WaitGroup
}

// standing is who a worker was in its latest transaction.
type standing struct {
	member     string
	generation int32
	producer   int64
	epoch      int16
}

func newWorker(name, address string, timeout time.Duration, dieAt int) *worker {
	ctx, end := context.WithCancel(context.Background())
	w := &worker{name: name, address: address, timeout: timeout, dieAt: dieAt, end: end, dead: make(chan struct{})}
	w.done.Go(func() {
		if err := w.run(ctx); err != nil && ctx.Err() == nil {
			w.mu.Lock()
			w.failed = fmt.Errorf("demo: worker %s: %w", name, err)
			w.mu.Unlock()
		}
	})
	return w
}

// run takes a new client whenever a transaction ends in an error, as applications
// should: the client cannot know what has become of it.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(w.address), kgo.ClientID(w.name), kgo.Dialer(w.dial),
			kgo.TransactionalID(workGroup+"-"+w.name), kgo.TransactionTimeout(w.timeout),
			kgo.ConsumerGroup(workGroup), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.CooperativeStickyBalancer()),
			kgo.SessionTimeout(workSession), kgo.HeartbeatInterval(100*time.Millisecond),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxPartitionBytes(batchBytes),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
			kgo.MetadataMinAge(50*time.Millisecond), kgo.FetchMaxWait(500*time.Millisecond), // not seconds, when kcoord is back
		)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.session = s
		w.mu.Unlock()
		for err == nil && ctx.Err() == nil {
			err = w.transact(ctx, s)
		}
		leave, cancel := context.WithTimeout(context.Background(), time.Second) // it may be cut off, and kcoord dead
		_ = s.Client().LeaveGroupContext(leave)                                 // the session ends it otherwise
		cancel()
		s.CloseAllowingRebalance()
	}
	return nil
}

// transact is one transaction. The session aborts it when partitions move meanwhile.
func (w *worker) transact(ctx context.Context, s *kgo.GroupTransactSession) error {
	orders := s.PollRecords(ctx, perWork).Records()
	if len(orders) == 0 {
		return ctx.Err()
	}
	if err := s.Begin(); err != nil {
		return err
	}
	first := kgo.AbortingFirstErrPromise(s.Client())
	for _, o := range orders {
		s.Produce(ctx, &kgo.Record{Topic: output, Value: fmt.Appendf(nil, "invoice for %s", o.Value)}, first.Promise())
	}
	if err := w.stand(ctx, s.Client()); err != nil {
		return err
	}
	committed, err := s.End(ctx, kgo.TransactionEndTry(first.Err() == nil))
	if committed {
		w.mu.Lock()
		w.committed++
		w.mu.Unlock()
	}
	return err
}

func (w *worker) stand(ctx context.Context, c *kgo.Client) (err error) {
	var now standing
	now.member, now.generation = c.GroupMetadata()
	now.producer, now.epoch, err = c.ProducerID(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastStand = now
	return err
}

func (w *worker) dial(ctx context.Context, network, address string) (net.Conn, error) {
	select {
	case <-w.dead:
		return nil, net.ErrClosed
	default:
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return &mortal{c, w}, nil
}

// mortal is a connection of a worker that may have to die.
type mortal struct {
	net.Conn
	of *worker
}

// Write looks at requests, which the client writes whole: EndTxn is what the worker
// does not live to send.
func (c *mortal) Write(b []byte) (int, error) {
	const size = 4
	if len(b) >= size+2 && kmsg.Key(binary.BigEndian.Uint16(b[size:])) == kmsg.EndTxn && c.of.dies() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// dies cuts the worker off, when it is time: all its connections end at once, and
// nothing is said to anybody, as when its machine loses power.
func (w *worker) dies() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dieAt == 0 || w.committed+1 < w.dieAt {
		return false
	}
	select {
	case <-w.dead:
		return true
	default:
	}
	close(w.dead)
	w.end()
	for _, c := range w.conns {
		_ = c.Close() // the kernel closes a dead process's
	}
	return true
}

// state is how many transactions it has committed, and who it was in the latest.
func (w *worker) state() (committed int, last standing, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed, w.lastStand, w.failed
}

// membership is who it is in the group now.
func (w *worker) membership() (member string, generation int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return "", -1
	}
	return w.session.Client().GroupMetadata()
}

func (w *worker) stop() {
	w.end()
	w.done.Wait()
}
