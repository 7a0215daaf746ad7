package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/kafka/upstream"
)

// cluster is a gateway in front of brokers that answer what they are told to.
type cluster struct {
	t     *testing.T
	log   *lines
	gw    *Gateway
	up    *upstream.Broker
	srv   *Server
	own   string // kcoord's own address
	nodes map[int32]*fakeNode

	mu    sync.Mutex
	shown []int32                   // brokers that Metadata names
	body  func(kmsg.Request) []byte // an answer's body, header tags included; nil: an ordinary one
	maxes map[int32]map[int16]int16 // versions that a node announces
}

type fakeNode struct {
	id    int32
	l     net.Listener
	conns sync.Map
}

// inPlace is where clients are told to find a broker.
func inPlace(id int32) Place { return Place{fmt.Sprintf("gateway-%d.example", id), 9000 + int(id)} }

func newCluster(t *testing.T, rest *Place, mapped ...int32) *cluster {
	t.Helper()
	c := &cluster{t: t, log: &lines{came: make(chan struct{}, 1)}, nodes: map[int32]*fakeNode{}, shown: []int32{1, 2, 3}}
	log := zerolog.New(c.log)
	for _, id := range []int32{1, 2, 3, 4} {
		c.start(id)
	}
	listen, advertise := Ports{Nodes: map[int32]Place{}, Rest: rest}, Ports{Nodes: map[int32]Place{}}
	for _, id := range mapped {
		listen.Nodes[id], advertise.Nodes[id] = Place{"127.0.0.1", 0}, inPlace(id)
	}
	var err error
	if c.gw, err = OpenGateway(listen, advertise, log); err != nil {
		t.Fatal(err)
	}
	c.up = upstream.Open(upstream.Options{Seeds: []string{c.nodes[1].l.Addr().String(), c.nodes[2].l.Addr().String()}, Log: log, Refresh: 50 * time.Millisecond, Seen: c.gw.See})
	<-c.up.Ready()
	c.srv = New(Options{Coordinator: newRecorder(yes), Upstream: c.up, Gateway: c.gw, Log: log})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.own = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- c.srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.srv.Shutdown(ctx)
		if err := <-served; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		c.up.Close()
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c
}

func (c *cluster) start(id int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	n := &fakeNode{id: id, l: l}
	c.nodes[id] = n
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			n.conns.Store(nc, nil)
			go c.serve(n, nc)
		}
	}()
}

// stop ends a broker and its connections.
func (c *cluster) stop(id int32) {
	n := c.nodes[id]
	n.l.Close()
	n.conns.Range(func(nc, _ any) bool { nc.(net.Conn).Close(); return true })
}

func (c *cluster) with(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cluster) serve(n *fakeNode, nc net.Conn) {
	defer nc.Close()
	for {
		f, err := readFrame(nc)
		if err != nil {
			return
		}
		r := kbin.Reader{Src: f}
		key, version, corr := r.Int16(), r.Int16(), r.Int32()
		client := r.NullableString()
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		if req.IsFlexible() {
			r.Src = r.Src[1:]
		}
		if err := req.ReadFrom(r.Src); err != nil {
			c.t.Errorf("%s v%d: %v", kmsg.NameForKey(key), version, err)
			return
		}
		body := c.answer(n, req, client != nil && *client == "kcoord")
		out := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
		out = binary.BigEndian.AppendUint32(out, uint32(corr))
		if _, err := nc.Write(append(out, body...)); err != nil {
			return
		}
	}
}

func (c *cluster) answer(n *fakeNode, req kmsg.Request, ours bool) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body != nil && !ours {
		return c.body(req)
	}
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		for _, a := range served(2) {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MinVersion, k.MaxVersion = a.key, a.min, a.max
			if m, ok := c.maxes[n.id][a.key]; ok {
				k.MaxVersion = m
			}
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	case *kmsg.MetadataResponse:
		resp.ClusterID = kmsg.StringPtr("fake")
		for _, id := range c.shown {
			b := kmsg.NewMetadataResponseBroker()
			at := c.nodes[id].l.Addr().(*net.TCPAddr)
			b.NodeID, b.Host, b.Port = id, "127.0.0.1", int32(at.Port)
			resp.Brokers = append(resp.Brokers, b)
		}
	}
	return encoded(resp)
}

// encoded is an answer's body, with the header's tags.
func encoded(resp kmsg.Response) []byte {
	var out []byte
	if resp.IsFlexible() && resp.Key() != 18 {
		out = append(out, 0)
	}
	return resp.AppendTo(out)
}

// client connects to the port of a broker; -1 is kcoord's own.
func (c *cluster) client(node int32) *client {
	c.t.Helper()
	addr := c.own
	if node >= 0 {
		addr = c.gw.Addr(node).String()
	}
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { nc.Close() })
	return &client{t: c.t, nc: nc}
}

// await waits until something is so.
func (c *cluster) await(what string, so func() bool) {
	c.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(10 * time.Second); !so(); {
		select {
		case <-tick.C:
		case <-limit:
			c.t.Fatal("not yet: " + what)
		}
	}
}

func coordinatorOf(c *client) kmsg.FindCoordinatorResponseCoordinator {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = []string{"g"}
	return do[*kmsg.FindCoordinatorResponse](c, 4, req).Coordinators[0]
}

// The coordinator is told to be the broker whose port it is asked at, by the
// address that Metadata has for it; when that broker is gone, one that is there.
func TestGatewayCoordinator(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	at := func(node int32) string {
		got := coordinatorOf(c.client(node))
		return fmt.Sprintf("%d %s:%d %d", got.NodeID, got.Host, got.Port, got.ErrorCode)
	}
	want := func(id int32) string { return fmt.Sprintf("%d %s:%d 0", id, inPlace(id).Host, inPlace(id).Port) }
	for asked, told := range map[int32]int32{-1: 1, 1: 1, 2: 2, 3: 3} {
		if got := at(asked); got != want(told) {
			t.Errorf("asked at %d: %s, not %s", asked, got, want(told))
		}
	}
	kept := c.client(2)
	c.with(func() { c.shown = []int32{1, 3} })
	c.stop(2)
	c.await("node 2 is gone", func() bool { return at(2) == want(1) })
	do[*kmsg.HeartbeatResponse](kept, 4, beat("g")) // the coordinator's APIs need no broker
	do[*kmsg.ApiVersionsResponse](c.client(2), 4, asker())
	gone := c.client(2)
	gone.send(9, kmsg.NewPtrMetadataRequest())
	gone.closed()
	do[*kmsg.MetadataResponse](c.client(-1), 9, kmsg.NewPtrMetadataRequest())
}

// Each port passes on to its own broker, and announces that one's versions.
func TestGatewayPortsAreTheirBrokers(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	c.with(func() { c.maxes = map[int32]map[int16]int16{2: {1: 15}} })
	for id, want := range map[int32]int16{1: 18, 2: 15, 3: 18} {
		if got := ranges(do[*kmsg.ApiVersionsResponse](c.client(id), 4, asker()))[1][1]; got != want {
			t.Errorf("the port of broker %d announces Fetch up to v%d", id, got)
		}
	}
	req := asker()
	req.ClusterID, req.NodeID = kmsg.StringPtr("fake"), 2
	for id, want := range map[int32]int16{1: 129, 2: 0, 3: 129, -1: 0} {
		if got := do[*kmsg.ApiVersionsResponse](c.client(id), 5, req).ErrorCode; got != want {
			t.Errorf("a client that means broker 2 gets %d at the port of %d", got, id)
		}
	}
}

// Brokers without a port are not shown, and told of; where there is a rule for all, they get one.
func TestGatewayNewBroker(t *testing.T) {
	brokers := func(c *cluster) (ids []int32) {
		resp := do[*kmsg.MetadataResponse](c.client(-1), 12, kmsg.NewPtrMetadataRequest())
		for _, b := range resp.Brokers {
			ids = append(ids, b.NodeID)
		}
		return ids
	}
	t.Run("without a port", func(t *testing.T) {
		c := newCluster(t, nil, 1, 3)
		c.log.await(t, "broker 2 has no port here, so that clients are not shown it: add 2=HOST:PORT to gateway.listen")
		if got := fmt.Sprint(brokers(c)); got != "[1 3]" {
			t.Error(got)
		}
	})
	t.Run("with a rule", func(t *testing.T) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		base := free.Addr().(*net.TCPAddr).Port - 4
		free.Close()
		c := newCluster(t, &Place{"127.0.0.1", base}, 1, 2, 3)
		c.with(func() { c.shown = append(c.shown, 4) })
		if got := fmt.Sprint(brokers(c)); got != "[1 2 3 4]" {
			t.Error(got)
		}
		c.await("node 4 is known", func() bool { return c.up.Node(4) != nil })
		if got := coordinatorOf(c.client(4)); got.NodeID != 4 || got.Host != "127.0.0.1" || got.Port != int32(base+4) {
			t.Errorf("%+v", got)
		}
	})
}

// A port that is in use is told of before anything else happens.
func TestGatewayPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := Place{"127.0.0.1", l.Addr().(*net.TCPAddr).Port}
	_, err = OpenGateway(Ports{Nodes: map[int32]Place{1: {"127.0.0.1", 0}, 2: at}}, Ports{}, zerolog.Nop())
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("gateway.listen, broker 2: ")) {
		t.Error(err)
	}
}

// A port that is in use when its broker is first seen is opened when it is free.
func TestGatewayPortIsFreed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCluster(t, &Place{"127.0.0.1", l.Addr().(*net.TCPAddr).Port - 3}, 1, 2)
	c.log.await(t, "the port for broker 3 cannot be opened, so that clients are not shown it until it can")
	if c.gw.Addr(3) != nil {
		t.Fatal(c.gw.Addr(3))
	}
	l.Close()
	c.await("broker 3 has its port", func() bool { return c.gw.Addr(3) != nil })
	if got := coordinatorOf(c.client(3)); got.NodeID != 3 {
		t.Errorf("%+v", got)
	}
}
