package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// fleet is a cluster of fake brokers, by node id.
type fleet map[int32]*broker

func newFleet(n int32, topics ...Topic) fleet {
	f, ids := fleet{}, []int32{}
	for id := int32(1); id <= n; id++ {
		f[id] = newBroker(topics...)
		ids = append(ids, id)
	}
	for _, b := range f {
		b.nodes = ids
	}
	return f
}

// each changes all brokers.
func (f fleet) each(change func(*broker)) {
	for _, b := range f {
		b.with(func() { change(b) })
	}
}

func (f fleet) down(id int32, is bool) { f[id].with(func() { f[id].down = is }) }

// open starts a gateway's Broker that is told of node 1 alone.
func (f fleet) open(t *testing.T, deleted *told) *Broker {
	up := Open(Options{
		Seeds: []string{"node:1"}, Log: zerolog.Nop(), Deleted: deleted.deleted,
		DialTo: func(ctx context.Context, addr string) (net.Conn, error) {
			for id, b := range f {
				if addr == fmt.Sprint("node:", id) {
					return b.dial(ctx)
				}
			}
			return nil, errors.New("no such address")
		},
	})
	t.Cleanup(up.Close)
	<-up.Ready()
	return up
}

func TestGatewayAsksWhomItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(3, Topic{"a", id(1), 3})
		up := f.open(t, &told{})
		if got := fmt.Sprint(up.Live()); got != "[1 2 3]" || up.Node(2).Addr() != "node:2" || up.Node(9) != nil {
			t.Fatal(got)
		}
		f.down(1, true)
		f.down(2, true)
		f[3].with(func() { f[3].nodes, f[3].topics["b"] = []int32{3}, Topic{"b", id(2), 1} })
		time.Sleep(5 * time.Second) // fake
		if got := fmt.Sprint(up.Live()); got != "[3]" || up.Node(1) == nil {
			t.Error(got)
		}
		if !up.Topics().Find([]byte("b")).Has(0) {
			t.Error("node 3 is not asked")
		}
		if _, err := up.Node(1).Dial(t.Context()); err == nil {
			t.Error("a dead broker was reached")
		}
		if nc, err := up.Dial(t.Context()); err != nil {
			t.Error(err)
		} else {
			nc.Close()
		}
	})
}

// Versions are asked of each broker, at most once in a while, and anew after it was lost.
func TestGatewayVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(2)
		up := f.open(t, &told{})
		n := up.Node(2)
		first := n.Versions(t.Context())
		if first == nil || n.Versions(t.Context()) != first {
			t.Fatal("asked twice")
		}
		n.Lost()
		if n.Versions(t.Context()) == first {
			t.Error("not asked anew")
		}
		f.down(2, true)
		n.Lost()
		if n.Versions(t.Context()) == nil {
			t.Error("the older answer does not do")
		}
	})
}

// A broker that lags behind the one that was asked before deletes nothing.
func TestGatewayBrokerBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(fleet) // after node 1 has gone
		want string      // deleted
	}{
		"lacks a topic":         {func(f fleet) { f[2].with(func() { delete(f[2].topics, "a") }) }, ""},
		"all lack it":           {func(f fleet) { f.each(func(b *broker) { delete(b.topics, "a") }) }, "a"},
		"has the one of before": {func(f fleet) { f[2].with(func() { f[2].topics["a"] = Topic{"a", id(9), 3} }) }, ""},
		"all have another":      {func(f fleet) { f.each(func(b *broker) { b.topics["a"] = Topic{"a", id(9), 3} }) }, "a→9"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(3, Topic{"a", id(1), 3}, Topic{"b", id(2), 1})
				gone := &told{}
				up := f.open(t, gone)
				f.each(func(b *broker) { b.nodes = []int32{2, 3} })
				time.Sleep(2 * time.Second) // fake
				tc.then(f)
				f.down(1, true)
				time.Sleep(10 * time.Second) // fake
				if got := gone.String(); got != tc.want {
					t.Errorf("deleted %q, not %q", got, tc.want)
				}
				if tc.want == "" {
					f.each(func(b *broker) { b.topics["a"] = Topic{"a", id(1), 3} })
					time.Sleep(5 * time.Second) // fake
					if !up.Topics().Find([]byte("a")).Has(2) || gone.String() != "" {
						t.Errorf("not there again, deleted %v", gone)
					}
				}
			})
		})
	}
}

// Connections that lead back to kcoord are told apart from those to others at the same port.
func TestLeadsTo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for at, want := range map[string]bool{"127.0.0.1": true, "0.0.0.0": true, "::": true, "127.0.0.2": false, "192.0.2.1": false} {
		if got := LeadsTo(nc, &net.TCPAddr{IP: net.ParseIP(at), Port: port}); got != want {
			t.Errorf("%s: %t", at, got)
		}
	}
	if LeadsTo(nc, &net.TCPAddr{IP: net.IPv4zero, Port: port + 1}) {
		t.Error("another port")
	}
}
