package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/api/admin"
	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/api/kafka"
	"github.com/kcoord/kcoord/api/kafka/embedded"
	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/config"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/storage/pebblelog"
)

// server is one running kcoord. What is opened is closed in the reverse order:
// first what takes requests, then what decides them, then what keeps them.
type server struct {
	load     func() (config.Config, error) // reads the settings anew
	config   config.Config                 // at the start
	files    files
	mu       sync.Mutex
	running  config.Config // of mu: what config has become
	notify   *notifier
	kafka    *kafka.Server
	log      zerolog.Logger
	metrics  *prometheus.Registry
	node     *coordinator.Node
	upstream *upstream.Broker
	gateway  *kafka.Gateway // nil: a sidecar
	failed   chan error     // of a listener
	// listening: from when the Kafka listener is up until the drain begins.
	listening atomic.Bool
	close     []func(context.Context) error
}

// planeStarter starts a data plane in process.
type planeStarter func(c config.Config, advertised string, log zerolog.Logger) (*embedded.Broker, error)

// runServer runs until ctx ends, then drains. plane is nil where the broker is
// another process.
func runServer(ctx context.Context, c config.Config, load func() (config.Config, error), plane planeStarter) (err error) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // from here on: it would end the process
	defer signal.Stop(hangup)
	s := &server{
		load: load, notify: newNotifier(), config: c, files: shareFiles(fileLimit()), running: c, log: newLog(c),
		metrics: prometheus.NewRegistry(), failed: make(chan error, 3),
	}
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if len(c.Ignored) > 0 {
		s.log.Info().Msgf("settings of the broker, which kcoord has no use for: %s", strings.Join(c.Ignored, " "))
	}
	if len(c.NotActedOn) > 0 {
		s.log.Info().Msgf("settings that are not acted on yet: %s", strings.Join(c.NotActedOn, " "))
	}
	defer func() { err = errors.Join(err, s.drain()) }()
	if err := s.open(plane); err != nil {
		return err
	}
	if c.Upstream != "" {
		go s.awaitUpstream(ctx)
	}
	return s.wait(ctx, hangup)
}

// wait serves until it is to end.
func (s *server) wait(ctx context.Context, hangup <-chan os.Signal) error {
	s.notify.ready()
	ended := make(chan struct{})
	defer close(ended)
	go s.notify.live(ended, s.alive)
	for {
		select {
		case <-hangup:
			s.reload()
		case <-ctx.Done():
			s.notify.stopping()
			s.log.Info().Msgf("%v: finishing what is under way, at most %s", context.Cause(ctx), s.patience())
			return nil
		case err := <-s.failed:
			return err
		}
	}
}

// ports are all that kcoord listens on. They are opened first, since a port in use is
// the most frequent reason not to start.
type ports struct{ kafka, admin, http net.Listener }

func (s *server) openPorts() (p ports, err error) {
	for _, one := range []struct {
		at      *net.Listener
		address string
		flag    string
	}{{&p.kafka, s.config.Listen, "--listen"}, {&p.admin, s.config.Admin, "--admin"}, {&p.http, s.config.HTTP, "--http"}} {
		if one.address == "" {
			continue
		}
		l, err := listen(one.address, one.flag)
		if err != nil {
			return p, err
		}
		*one.at = l
		s.later(func(context.Context) error { l.Close(); return nil }) // for the case that nobody comes to serve it
	}
	return p, nil
}

func (s *server) later(f func(context.Context) error) { s.close = append(s.close, f) }

func (s *server) open(plane planeStarter) error {
	p, err := s.openPorts()
	if err != nil {
		return err
	}
	if err := s.openGateway(); err != nil {
		return err
	}
	advertised := cmp.Or(s.config.Advertise, p.kafka.Addr().String())
	backend, err := s.openBackend()
	if err != nil {
		return err
	}
	var node *coordinator.Node
	opened := make(chan struct{})
	o := behind(s.config, advertised, s.log)
	o.Deleted = func(topics map[string][16]byte) error {
		<-opened
		return s.forget(node, topics)
	}
	if plane != nil {
		broker, err := plane(s.config, advertised, s.log)
		if err != nil {
			return err
		}
		s.later(func(context.Context) error { broker.Close(); return nil })
		o.Dial = broker.Dial
	}
	if s.gateway != nil {
		o.Seen = s.gateway.See
	}
	o.Own = s.own(p.kafka.Addr())
	s.upstream = upstream.Open(o)
	s.later(func(context.Context) error { s.upstream.Close(); return nil })
	node, err = s.openNode(backend, plane != nil)
	close(opened)
	if err != nil {
		return err
	}
	if plane != nil {
		s.awaitPlane()
	}
	if err := s.serve(p, node, advertised); err != nil {
		return err
	}
	s.started(p, advertised)
	return nil
}

// openBackend opens the log.
func (s *server) openBackend() (*pebblelog.Backend, error) {
	if err := claimShards(s.config.Data, shardsFile, s.config.Shards); err != nil {
		return nil, err
	}
	if err := claimShards(s.config.Data, txnShardsFile, s.config.TxnShards); err != nil {
		return nil, err
	}
	backend, err := pebblelog.Open(filepath.Join(s.config.Data, "coordinator"), coordinator.Index, pebblelog.Options{
		MaxOpenFiles: s.files.tables,
		Logf:         func(format string, args ...any) { s.log.Debug().Str("part", "pebble").Msgf(format, args...) },
	})
	if err != nil {
		return nil, opening(err)
	}
	s.later(func(context.Context) error { return backend.Close() })
	return backend, nil
}

// openNode opens the coordinator over the log.
func (s *server) openNode(backend *pebblelog.Backend, embedded bool) (*coordinator.Node, error) {
	epoch, err := nextEpoch(s.config.Data, time.Now())
	if err != nil {
		return nil, err
	}
	ids, markers := s.upstream.ProducerIDs(embedded), s.upstream.Markers()
	s.later(func(context.Context) error { ids.Close(); markers.Close(); return nil })
	transactions := s.config.Txn
	transactions.TransactionVersion = int16(s.config.TransactionVersion)
	node, err := coordinator.Open(coordinator.Options{
		Backend: backend, Shards: s.config.Shards, Group: s.config.Group, Log: s.log,
		Checkpoint: backend.Checkpoint, Downgrades: filepath.Join(s.config.Data, "downgrades"),
		TxnShards: s.config.TxnShards, Txn: transactions, ProducerIDs: ids, Brokers: markers, CoordinatorEpoch: epoch,
	})
	if err != nil {
		return nil, err
	}
	s.later(func(context.Context) error { node.Close(); return nil })
	s.metrics.MustRegister(&coordinatorMetrics{node.Stats, backend.Stats}, &txnMetrics{node.TxnStats, time.Now})
	s.node = node
	return node, nil
}

// forget deletes the offsets of deleted topics everywhere.
func (s *server) forget(node *coordinator.Node, topics map[string][16]byte) error {
	offsets, err := node.ForgetTopics(topics)
	if err != nil {
		return err
	}
	if offsets > 0 {
		s.log.Info().Strs("topics", slices.Sorted(maps.Keys(topics))).Int("offsets", offsets).Msg("topics were deleted, and so were their offsets")
	}
	return nil
}

// serve begins to answer.
func (s *server) serve(p ports, node *coordinator.Node, advertised string) error {
	if p.http != nil {
		h := newHTTP(s.metrics, s.ready)
		s.later(h.Shutdown)
		s.run("http", func() error { return h.Serve(bounded(p.http, s.files.http)) })
	}
	if p.admin != nil {
		if err := s.serveAdmin(p, node, advertised); err != nil {
			return err
		}
	}
	k := kafka.New(kafka.Options{
		Coordinator: node, Transactions: node, Versions: node, OffsetsPartitions: node.Partitions(),
		TransactionVersion: int16(s.config.TransactionVersion), Embedded: s.config.Upstream == "" && s.gateway == nil,
		Upstream: s.upstream, Gateway: s.gateway, Advertised: s.config.Advertise,
		Limits: limits(s.config), MaxSockets: s.files.sockets, Log: s.log, Metrics: s.metrics,
	})
	s.kafka = k
	s.later(func(ctx context.Context) error {
		if err := k.Shutdown(ctx); err != nil {
			s.log.Warn().Msg("connections were cut off: shutdown.timeout.ms was over")
		}
		return nil
	})
	s.run("kafka", func() error { return k.Serve(p.kafka) })
	s.listening.Store(true)
	return nil
}

func (s *server) serveAdmin(p ports, node *coordinator.Node, advertised string) error {
	broker, err := admin.NewBroker(advertised, s.upstream.Dial)
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { broker.Close(); return nil })
	a := admin.New(admin.Options{Coordinator: node, Versions: node, Broker: broker, Node: &adminpb.DescribeNodeResponse{
		Version: version, Listen: p.kafka.Addr().String(), Advertised: advertised, Upstream: s.config.Upstream,
	}})
	s.later(func(ctx context.Context) error { a.Drain(ctx); return nil })
	s.run("admin", func() error { return a.Serve(bounded(p.admin, s.files.admin)) })
	return nil
}

// run serves a listener. When that ends before it is to, so does the process.
func (s *server) run(name string, serve func() error) {
	go func() {
		err := serve()
		if err != nil && !errors.Is(err, kafka.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("the %s listener failed: %w", name, err)
		}
	}()
}

// started tells where kcoord is to be found.
func (s *server) started(p ports, advertised string) {
	address := func(l net.Listener) string {
		if l == nil {
			return "off"
		}
		return l.Addr().String()
	}
	e := s.log.Info().Str("kafka", p.kafka.Addr().String()).Str("advertised", advertised).Str("admin", address(p.admin)).
		Str("http", address(p.http)).Str("data", s.config.Data)
	if s.config.Upstream != "" {
		e = e.Str("upstream", s.config.Upstream)
	}
	e.Msg("kcoord has started")
}

// silence is how long a broker may be silent before it is talked about.
const silence = 3 * time.Second

// awaitPlane waits for the broker in this process, so that the first client is not told
// to try again for want of a coordinator's address.
func (s *server) awaitPlane() {
	select {
	case <-s.upstream.Ready():
	case <-time.After(silence):
	}
}

// awaitUpstream says whether the broker is found. Clients are served meanwhile,
// and told to try again where the broker is needed.
func (s *server) awaitUpstream(ctx context.Context) {
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for waiting := true; waiting; {
		select {
		case <-s.upstream.Ready():
			waiting = false
		case <-silent.C:
			s.log.Warn().Msgf("the broker at %s does not answer: kcoord keeps trying; is it up, and is --upstream right?", s.config.Upstream)
		case <-ctx.Done():
			return
		}
	}
	if c, ok := s.upstream.Cluster(); ok {
		s.log.Info().Str("cluster", c.ID).Int32("node", c.NodeID).Msgf("the broker at %s answers", s.config.Upstream)
	}
}

// patience is shutdown.timeout.ms as it is now.
func (s *server) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running.ShutdownTimeout
}

// drain closes everything, within the bound that is set.
func (s *server) drain() error {
	s.listening.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	var errs []error
	for _, f := range slices.Backward(s.close) {
		if err := f(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
