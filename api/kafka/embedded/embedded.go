// Package embedded is a broker in this process, for a laptop: franz-go's kfake
// keeps topics and their records, and the sidecar in front of it does the rest.
//
// Its clients know it by the sidecar's address, so that is what it tells them: one
// node, which is both.
package embedded

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
)

// foreverTransactional has the broker keep its hands off transactions: their coordinator is
// in front of it, and a producer's whole life is one long transaction to it, since it
// never hears how one ended.
var foreverTransactional = map[string]string{
	"transaction.max.timeout.ms":     strconv.Itoa(math.MaxInt32),
	"transactional.id.expiration.ms": strconv.Itoa(math.MaxInt32),
}

// Options say what kind of broker it is.
type Options struct {
	Advertised string // host:port of the sidecar
	DataDir    string // where topics and records are kept; empty: in memory
	ClusterID  string // "kcoord-dev" where empty

	AutoCreateTopics bool // auto.create.topics.enable
	Partitions       int  // num.partitions: of topics that say no number; Kafka's default is 1

	Log zerolog.Logger
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	l       net.Listener
}

// Start starts a broker. It listens on a port of loopback that nobody is told of.
func Start(o Options) (*Broker, error) {
	if o.ClusterID == "" {
		o.ClusterID = "kcoord-dev"
	}
	host, port, err := net.SplitHostPort(o.Advertised)
	if err != nil {
		return nil, fmt.Errorf("embedded: advertised address %q: %w", o.Advertised, err)
	}
	b := &Broker{}
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(o.ClusterID),
		kfake.DefaultNumPartitions(max(o.Partitions, 1)),
		kfake.WithLogger(&logger{o.Log}),
		kfake.BrokerConfigs(foreverTransactional),
		kfake.ListenFn(func(string, string) (net.Listener, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			b.l = l
			return &listener{Listener: l, addr: address{host, port}}, nil
		}),
	}
	if o.AutoCreateTopics {
		opts = append(opts, kfake.AllowAutoTopicCreation())
	}
	if o.DataDir != "" {
		if err := recoverFolder(o.DataDir); err != nil {
			return nil, err
		}
		opts = append(opts, kfake.DataDir(o.DataDir), kfake.SyncWrites())
	}
	if b.cluster, err = kfake.NewCluster(opts...); err != nil {
		return nil, fmt.Errorf("embedded: starting the broker in %q: %w", o.DataDir, err)
	}
	if o.AutoCreateTopics {
		b.keepMade()
	}
	return b, nil
}

// Dial opens a connection to the broker.
func (b *Broker) Dial(ctx context.Context) (net.Conn, error) {
	a := b.l.Addr()
	return (&net.Dialer{}).DialContext(ctx, a.Network(), a.String())
}

// Close stops the broker; what it was told is in its folder.
func (b *Broker) Close() { b.cluster.Close() }

// listener is a listener that goes by another address.
type listener struct {
	net.Listener
	addr address
}

func (l *listener) Addr() net.Addr { return l.addr }

type address struct{ host, port string }

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return net.JoinHostPort(a.host, a.port) }

type logger struct{ log zerolog.Logger }

func (l *logger) Logf(level kfake.LogLevel, format string, args ...any) {
	e := l.log.Debug() // what it calls information is a line a request
	switch level {
	case kfake.LogLevelError:
		e = l.log.Error()
	case kfake.LogLevelWarn:
		e = l.log.Warn()
	}
	e.Str("part", "embedded broker").Msgf(format, args...)
}
