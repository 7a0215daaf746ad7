package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Node is one broker of the cluster behind a gateway.
type Node struct {
	ID int32
	b  *Broker

	mu       sync.Mutex
	addr     string
	versions *kmsg.ApiVersionsResponse
	asked    time.Time // when the versions were asked for
	asking   sync.Mutex
}

// nodes is what a gateway knows of its cluster. It is never changed.
type nodes struct {
	all  map[int32]*Node // also those that Metadata leaves out now, as it does with dead ones
	live []int32         // in order
}

func (b *Broker) gateway() bool { return len(b.o.Seeds) > 0 }

// Node returns a broker that was seen at least once; nil if there is none of this id.
func (b *Broker) Node(id int32) *Node { return b.nodes.Load().all[id] }

// Live are the ids of the brokers that the latest answer named, in order. It is shared: don't change it.
func (b *Broker) Live() []int32 { return b.nodes.Load().live }

// meet takes in which brokers there are.
func (b *Broker) meet(brokers []kmsg.MetadataResponseBroker) {
	old := b.nodes.Load()
	now := &nodes{all: map[int32]*Node{}}
	maps.Copy(now.all, old.all)
	for _, br := range brokers {
		n := now.all[br.NodeID]
		if n == nil {
			n = &Node{ID: br.NodeID, b: b}
			now.all[br.NodeID] = n
		}
		n.moved(hostPort(br.Host, br.Port))
		now.live = append(now.live, br.NodeID)
	}
	slices.Sort(now.live)
	if !slices.Equal(now.live, old.live) {
		b.nodes.Store(now)
		b.o.Log.Info().Ints32("nodes", now.live).Msg("brokers of the cluster")
	}
	if b.o.Seen != nil {
		b.o.Seen(now.live)
	}
}

func (n *Node) moved(to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.addr != to {
		n.addr, n.asked = to, time.Time{}
	}
}

// Addr is where the broker was last said to be.
func (n *Node) Addr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr
}

// Dial opens a connection to pass requests on.
func (n *Node) Dial(ctx context.Context) (net.Conn, error) {
	nc, err := n.b.dialTo(ctx, n.Addr())
	if err != nil {
		n.Lost()
	}
	return nc, err
}

// Lost says that a connection broke: the broker may come back as a newer one.
func (n *Node) Lost() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = time.Time{}
}

// After a question for versions that failed, no other is put for so long.
const versionsRetry = time.Second

// Versions is this broker's answer to ApiVersions, which may be some seconds
// old; while it cannot be asked, an older one, or that of another broker, or nil.
func (n *Node) Versions(ctx context.Context) *kmsg.ApiVersionsResponse {
	n.asking.Lock()
	defer n.asking.Unlock()
	n.mu.Lock()
	known, old := n.versions, time.Since(n.asked) >= versionsAge
	n.mu.Unlock()
	if !old {
		return cmp.Or(known, n.b.Versions())
	}
	l := &link{timeout: n.b.o.Timeout, told: func(r *kmsg.ApiVersionsResponse) { known = r }}
	l.dial = func(ctx context.Context) (net.Conn, error) { return n.b.dialTo(ctx, n.Addr()) }
	err := l.open(ctx)
	l.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = time.Now()
	if err != nil {
		n.asked = n.asked.Add(versionsRetry - versionsAge)
	}
	n.versions = known
	return cmp.Or(known, n.b.Versions())
}

// dialTo opens a connection to one address.
func (b *Broker) dialTo(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	return b.o.DialTo(ctx, addr)
}

// dialAny opens a connection to any broker of the cluster: the one that answered
// last, so that what is asked and what is passed on go to the same one, else the
// next that can be reached.
func (b *Broker) dialAny(ctx context.Context) (net.Conn, string, error) {
	var errs []error
	for _, addr := range b.candidates() {
		nc, err := b.dialTo(ctx, addr)
		if err == nil {
			return nc, addr, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, "", fmt.Errorf("upstream: no broker of the cluster can be reached: %w", errors.Join(errs...))
}

// candidates are where a broker may be, in the order of trying.
func (b *Broker) candidates() []string {
	var all []string
	add := func(addr string) {
		if addr != "" && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	if at := b.current.Load(); at != nil {
		add(*at)
	}
	known := b.nodes.Load()
	for _, id := range known.live {
		add(known.all[id].Addr())
	}
	for _, addr := range b.o.Seeds {
		add(addr)
	}
	return all
}

// settle remembers where questions are answered; "" after a failure, when the next
// one goes elsewhere.
func (b *Broker) settle(addr string) {
	if addr != "" {
		b.current.Store(&addr)
		return
	}
	all := b.candidates()
	if len(all) > 1 {
		b.current.Store(&all[1])
	}
}
