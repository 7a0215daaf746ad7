package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// order is what the process of the misbehaving ones is told: to begin at an address, else to stop, or
// nothing but to report, as it does in any case.
type order struct {
	Report bool
	Addr   string
	Groups int    // of those that behave
	Only   string // habits
}

// report is how often each habit was indulged in so far.
type report struct {
	Broker string // behind, in the first report
	Acts   map[string]int64
	Failed string // why kcoord could not be reached, if that ever was so
}

// habit is a way to misbehave. act does so once, as one of several clients.
type habit struct {
	name    string
	clients int
	every   time.Duration // from the end of one act to the next
	act     func(ctx context.Context, b *bad, client int) error
}

// bad is one phase of misbehaviour.
type bad struct {
	order
	tally *acts
}

// acts counts them over all phases.
type acts struct {
	mu      sync.Mutex
	of      map[string]*atomic.Int64
	refused string // the first connection that could not be made
}

// misbehave is the process: it takes orders until there are none.
func misbehave(ctx context.Context, in io.Reader, out io.Writer) error {
	cluster, err := broker()
	if err != nil {
		return err
	}
	defer cluster.Close()
	done := &acts{of: map[string]*atomic.Int64{}}
	orders, reports := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	if err := reports.Encode(report{Broker: cluster.ListenAddrs()[0]}); err != nil {
		return err
	}
	stop := func() {}
	defer func() { stop() }()
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !o.Report {
			stop()
			stop = func() {}
		}
		if o.Addr != "" {
			stop = (&bad{o, done}).indulge(ctx)
		}
		if err := reports.Encode(done.report()); err != nil {
			return err
		}
	}
}

// broker is what kcoord stands in front of: with a few megabytes to fetch.
func broker() (*kfake.Cluster, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(100, topicName))
	if err != nil {
		return nil, err
	}
	w, err := dial(cluster.ListenAddrs()[0])
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for range 16 {
		resp, err := do(w, produceRequest(topicName, make([]byte, 256<<10)), kmsg.NewPtrProduceResponse())
		if err != nil {
			return nil, err
		}
		if err := failed(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
			return nil, fmt.Errorf("soak: filling the broker: %w", err)
		}
	}
	return cluster, nil
}

// indulge starts all habits; stop ends them and waits until their connections are closed.
func (b *bad) indulge(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	only := regexp.MustCompile(b.Only)
	for _, h := range habits {
		if !only.MatchString(h.name) {
			continue
		}
		n := b.tally.counter(h.name)
		for client := range h.clients {
			all.Go(func() { b.repeat(ctx, h, client, n) })
		}
	}
	return func() { cancel(); all.Wait() }
}

// repeat indulges in a habit. The first act of each client comes at another time, so that
// they don't act together for ever.
func (b *bad) repeat(ctx context.Context, h habit, client int, n *atomic.Int64) {
	for wait := min(h.every*time.Duration(client+1)/time.Duration(h.clients), time.Second); ; wait = h.every {
		if !pause(ctx, wait) {
			return
		}
		n.Add(1)
		err := h.act(ctx, b, client) // how it ends is kcoord's choice
		if refused := (*net.OpError)(nil); errors.As(err, &refused) && refused.Op == "dial" && ctx.Err() == nil {
			b.tally.refuse(fmt.Errorf("%s: %w", h.name, err))
		}
	}
}

// dial connects for as long as the phase lasts.
func (b *bad) dial(ctx context.Context) (*wire, error) {
	w, err := dial(b.Addr)
	if err == nil {
		context.AfterFunc(ctx, func() { w.Close() })
	}
	return w, err
}

func (a *acts) counter(name string) *atomic.Int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[name] == nil {
		a.of[name] = &atomic.Int64{}
	}
	return a.of[name]
}

func (a *acts) refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == "" {
		a.refused = err.Error()
	}
}

func (a *acts) report() report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := report{Acts: map[string]int64{}, Failed: a.refused}
	for name, n := range a.of {
		r.Acts[name] = n.Load()
	}
	return r
}

// gang is the process of the misbehaving ones, from outside.
type gang struct {
	broker string
	cmd    *exec.Cmd
	in     io.WriteCloser
	orders *json.Encoder
	out    *json.Decoder
}

func hire() (*gang, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// What they burn themselves would, elsewhere, be another machine's: they come last.
	g := &gang{cmd: exec.Command("nice", "-n", "39", self, "-role", "badly")}
	g.cmd.Env = append(os.Environ(), "SOAK_ROLE=badly") // for the test, whose binary knows no flags of ours
	g.cmd.Stderr = os.Stderr
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.orders, g.out = json.NewEncoder(g.in), json.NewDecoder(out)
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("soak: starting the misbehaving ones: %w", err)
	}
	var r report
	if err := g.out.Decode(&r); err != nil {
		return nil, fmt.Errorf("soak: the misbehaving ones did not start: %w", err)
	}
	g.broker = r.Broker
	return g, nil
}

// tell gives an order and returns the report.
func (g *gang) tell(o order) (r report, err error) {
	if err = g.orders.Encode(o); err == nil {
		err = g.out.Decode(&r)
	}
	if err == nil && r.Failed != "" {
		err = fmt.Errorf("soak: kcoord refused a connection: %s", r.Failed)
	}
	return r, err
}

// begin starts them, and waits until each habit has been indulged in: else a pass would say nothing of some.
func (g *gang) begin(ctx context.Context, o order) error {
	before, err := g.tell(o)
	if err != nil {
		return err
	}
	only := regexp.MustCompile(o.Only)
	return until(ctx, patience, func() error {
		r, err := g.tell(order{Report: true})
		if err != nil {
			return err
		}
		for name, n := range r.Acts {
			if only.MatchString(name) && n <= before.Acts[name] {
				return fmt.Errorf("soak: %q was not begun", name)
			}
		}
		return nil
	})
}

// dismiss ends the process.
func (g *gang) dismiss() error {
	g.in.Close()
	return g.cmd.Wait()
}

// pause returns false when ctx is over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
