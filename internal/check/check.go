// Package check says beforehand, in words, what would keep a kcoord from serving in
// front of a broker. It changes nothing, neither at the broker nor on the disk but for
// a file that it removes again.
package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Level says how bad a finding is.
type Level string

// Levels.
const (
	OK   Level = "OK"
	Warn Level = "WARN" // it works, and not as one may think
	Fail Level = "FAIL"
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level
	Text  string
}

// Options say what is to stand where.
type Options struct {
	Upstream  string // the broker
	Listen    string // kcoord's port
	Advertise string // what clients are told; "": Listen
	Data      string // the data folder; "": not looked at
}

// checking collects findings.
type checking struct {
	o       Options
	found   []Finding
	client  *kgo.Client
	admin   *kadm.Client
	meta    kadm.Metadata
	started time.Time
}

func (c *checking) add(l Level, format string, args ...any) {
	c.found = append(c.found, Finding{l, fmt.Sprintf(format, args...)})
}

// All looks at everything, in an order in which the first failure is the first to mend.
func All(ctx context.Context, o Options) []Finding {
	if o.Advertise == "" {
		o.Advertise = o.Listen
	}
	c := &checking{o: o}
	c.port()
	c.folder()
	if !c.connect(ctx) {
		return c.found
	}
	defer c.client.Close()
	for _, look := range []func(context.Context){c.versions, c.advertised, c.settings, c.rights, c.groups, c.clock} {
		ctx, cancel := context.WithTimeout(ctx, patience)
		look(ctx)
		cancel()
	}
	return c.found
}

// patience bounds each question.
const patience = 10 * time.Second

// port looks whether kcoord could listen.
func (c *checking) port() {
	l, err := net.Listen("tcp", c.o.Listen)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		c.add(Fail, "%s cannot be listened on: %v. Choose another port with --listen, or stop what has it.", c.o.Listen, err)
	} else {
		l.Close()
		c.add(OK, "%s is free to listen on.", c.o.Listen)
	}
	if host, _, err := net.SplitHostPort(c.o.Advertise); err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
		c.add(Fail, "Clients cannot connect to %s: say with --advertise HOST:PORT by which address they reach this machine.", c.o.Advertise)
	}
}

// connect asks the broker for its cluster. A broker that is configured for kcoord
// already gives kcoord's address as its own, which must not be followed.
func (c *checking) connect(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == c.o.Advertise {
			to = c.o.Upstream
		}
		return (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, network, to)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.o.Upstream), kgo.ClientID("kcoord-check"), kgo.Dialer(dial),
		kgo.RequestRetries(1), kgo.RetryTimeout(5*time.Second))
	if err != nil {
		c.add(Fail, "%s is no address of a broker: %v", c.o.Upstream, err)
		return false
	}
	c.client, c.admin = client, kadm.NewClient(client)
	c.started = time.Now()
	if c.meta, err = c.admin.BrokerMetadata(ctx); err != nil {
		client.Close()
		c.add(Fail, "No broker answers on %s: %s. Is it up, is this a PLAINTEXT listener of it, and is nothing in between?", c.o.Upstream, words(err))
		return false
	}
	c.add(OK, "The broker on %s answers, of cluster %s (brokers: %d).", c.o.Upstream, c.meta.Cluster, len(c.meta.Brokers))
	return true
}

// words is an error without what a client library says around it.
func words(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if ke := (*kerr.Error)(nil); errors.As(err, &ke) {
		return ke.Message
	}
	return err.Error()
}
