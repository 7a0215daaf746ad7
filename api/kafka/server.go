package kafka

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// Coordinator answers the requests about groups. reply is called exactly once,
// from whichever goroutine, and does not block.
type Coordinator interface {
	// Group asks the shard of the request's group.
	Group(req group.Request, reply func(group.Response, error))
	// EachGroup asks every shard, and replies in the order of shards.
	EachGroup(req group.Request, reply func([]group.Response, error))
}

// Transactions answers the requests about transactions. reply is called exactly
// once, from whichever goroutine, and does not block.
type Transactions interface {
	// Txn asks the shard of the request's transactional id.
	Txn(req txn.Request, reply func(txn.Response, error))
	// EachTxn asks every shard, and replies in the order of shards.
	EachTxn(req txn.Request, reply func([]txn.Response, error))
	// CommitInTxn asks the transaction's shard, and then the group's.
	CommitInTxn(req coordinator.TxnCommit, reply func(group.TxnCommitted, error))
	// ProduceInTxn asks whether records may be written. Until arrived is called the transaction may be decided, but
	// not ended.
	ProduceInTxn(req txn.Request, producer txn.Producer, reply func(resp txn.Response, arrived func(), err error))
	// Marker writes a marker to a partition of __consumer_offsets.
	Marker(partition int32, m group.Marker, reply func(group.Response, error))
}

// Options configure a Server. Zero values are Kafka's defaults.
type Options struct {
	Coordinator  Coordinator
	Transactions Transactions
	Versions     Versions // nil: there is nothing finalized
	// OffsetsPartitions is how many partitions of __consumer_offsets there are here.
	OffsetsPartitions int32
	// TransactionVersion is the highest transaction.version that clients are told, whatever is
	// finalized: 2, or 1 without KIP-890. 0: 2.
	TransactionVersion int16
	// Embedded says that the broker behind is package embedded's.
	Embedded bool

	Upstream *upstream.Broker
	// Gateway stands for the brokers of a cluster; Upstream then knows them by node id.
	// nil: a sidecar.
	Gateway *Gateway
	// Advertised is the host:port that clients reach the coordinator by. Empty:
	// each client is told the address that it connected to.
	Advertised string

	Limits // as they are at the start; Limit changes them
	// MaxSockets bounds the clients' connections and those to the broker for them together.
	// 0: nothing does.
	MaxSockets int

	Log     zerolog.Logger
	Metrics prometheus.Registerer // nil: none
}

// Server serves Kafka's protocol on listeners.
type Server struct {
	o        Options
	apis     []api // in the order of keys
	table    map[int16]*api
	m        *metrics
	ctx      context.Context // ends when Shutdown's patience does
	cancel   context.CancelFunc
	bad      rate
	legacy   rate          // of log lines about commits that name no member
	accepted atomic.Uint64 // connections so far: they number them
	sockets  openSockets
	limits   atomic.Pointer[Limits]

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	perIP     map[string]int
	draining  bool
	running   sync.WaitGroup // connections, and the sweep
	stop      chan struct{}  // closed when draining begins
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = errors.New("kafka: the server is shut down")

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	if o.TransactionVersion == 0 {
		o.TransactionVersion = 2
	}
	apis := served(o.TransactionVersion)
	s := &Server{
		o: o, apis: apis, table: make(map[int16]*api, len(apis)), m: newMetrics(o.Metrics, apis), stop: make(chan struct{}),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, perIP: map[string]int{},
	}
	for i := range apis {
		s.table[apis[i].key] = &apis[i]
	}
	s.sockets.most = int64(o.MaxSockets)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.Limit(o.Limits)
	s.running.Add(1)
	go s.sweep()
	if o.Gateway != nil {
		o.Gateway.start(s.serveInPlace)
	}
	return s
}

// serveInPlace serves a broker's port until the server is shut down.
func (s *Server) serveInPlace(p *port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		p.l.Close()
		return
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		if err := s.serve(p); !errors.Is(err, ErrClosed) {
			s.o.Log.Error().Err(err).Int32("node", p.node).Msg("the port of a broker failed: restart kcoord to have it again")
		}
	}()
}

// Serve accepts connections until the listener fails or the server is shut down.
func (s *Server) Serve(l net.Listener) error { return s.serve(&port{node: -1, l: l}) }

func (s *Server) serve(p *port) error {
	l := p.l
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for wait := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			wait = 0
			s.accept(nc, p)
			continue
		}
		if s.isDraining() {
			return ErrClosed
		}
		if !temporary(err) {
			return err
		}
		// Out of file descriptors, say: what there is goes on meanwhile.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		s.o.Log.Warn().Err(err).Msg("a connection could not be accepted; trying again: raise the limit of open files")
		select {
		case <-s.stop:
			return ErrClosed
		case <-time.After(wait):
		}
	}
}

// temporary says whether Accept may work later.
func temporary(err error) bool {
	te, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && te.Temporary()
}

// accept starts serving a connection, or closes it where there are too many.
func (s *Server) accept(nc net.Conn, p *port) {
	c := newConn(s, nc, p)
	c.number = s.accepted.Add(1)
	if err := s.admit(c); err != nil {
		nc.Close()
		s.m.refused()
		s.warn(c, err)
		return
	}
	s.m.connected()
	go c.serve()
}

// admit counts a connection, unless there are too many.
func (s *Server) admit(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := s.limits.Load()
	if s.draining || len(s.conns) >= limits.MaxConnections || s.perIP[c.host] >= limits.MaxConnectionsPerIP {
		return errLimit
	}
	if !s.sockets.take() {
		return errSockets
	}
	s.conns[c] = struct{}{}
	s.perIP[c.host]++
	s.running.Add(1)
	return nil
}

// ended forgets a connection.
func (s *Server) ended(c *conn, err error) {
	s.mu.Lock()
	delete(s.conns, c)
	if s.perIP[c.host]--; s.perIP[c.host] <= 0 {
		delete(s.perIP, c.host)
	}
	s.mu.Unlock()
	s.sockets.give()
	if c.up != nil {
		s.sockets.give()
	}
	s.m.disconnected(err)
	if !errors.Is(err, errClientGone) && !errors.Is(err, errDrained) {
		s.warn(c, err)
	}
	s.running.Done()
}

// sweep closes connections on which nothing moves.
func (s *Server) sweep() {
	defer s.running.Done()
	every := s.limits.Load().sweepEvery()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			limits := s.limits.Load()
			if is := limits.sweepEvery(); is != every {
				every = is
				tick.Reset(every)
			}
			for _, c := range s.connections() {
				if c.idle(now, limits.MaxIdle) {
					c.close(errIdle)
				}
			}
		}
	}
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Shutdown stops accepting, lets what is under way be answered and closes all
// connections; at the end of ctx it closes them as they are. Parked requests are
// answered NOT_COORDINATOR at once. Shut the server down before the coordinator,
// so that commits under way become durable and are answered.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining = true
		close(s.stop)
	}
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	for _, c := range s.connections() {
		c.drain()
	}
	gone := make(chan struct{})
	go func() {
		s.running.Wait()
		close(gone)
	}()
	var err error
	select {
	case <-gone:
	case <-ctx.Done():
		err = ctx.Err()
		s.cancel()
		for _, c := range s.connections() {
			c.close(errDrained)
		}
		<-gone
	}
	s.cancel()
	return err
}
