package kafka

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// Place is an address.
type Place struct {
	Host string
	Port int
}

func (p Place) String() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// Ports say an address for each broker.
type Ports struct {
	Nodes map[int32]Place // by node id
	Rest  *Place          // of all others: the port is this one's plus the node id
}

// of is a broker's.
func (p Ports) of(id int32) (Place, bool) {
	if at, ok := p.Nodes[id]; ok {
		return at, true
	}
	if p.Rest == nil || id < 0 || int(id) > 65535-p.Rest.Port {
		return Place{}, false
	}
	return Place{p.Rest.Host, p.Rest.Port + int(id)}, true
}

// Gateway stands in for each broker of a cluster at a port of its own, and tells
// clients these ports instead of the brokers' addresses. A broker that has none is
// not shown to clients: one that went to the broker itself would find another
// coordinator there, which knows nothing of what this one has committed.
type Gateway struct {
	listen, advertise Ports
	log               zerolog.Logger
	open              sync.Map // int32 → *port; nil *port: it has none

	mu    sync.Mutex // of opening
	serve func(*port)
}

// port is a listener of the server.
type port struct {
	node      int32 // the broker it stands in for; -1: kcoord's own
	l         net.Listener
	at        Place // as clients are told; without a host: by the address that they use
	announced atomic.Pointer[announcement]
}

// OpenGateway opens the ports of the brokers that listen names; the others' are opened
// when they are first seen.
func OpenGateway(listen, advertise Ports, log zerolog.Logger) (*Gateway, error) {
	g := &Gateway{listen: listen, advertise: advertise, log: log}
	for id := range listen.Nodes {
		if _, err := g.openPort(id); err != nil {
			g.Close()
			return nil, fmt.Errorf("gateway.listen, broker %d: %w", id, err)
		}
	}
	return g, nil
}

// Close closes the ports. A Server that has the gateway does it itself.
func (g *Gateway) Close() {
	g.each(func(p *port) { p.l.Close() })
}

func (g *Gateway) each(visit func(*port)) {
	g.open.Range(func(_, p any) bool {
		if p := p.(*port); p != nil {
			visit(p)
		}
		return true
	})
}

// Addr is where a broker's port listens; nil where it has none.
func (g *Gateway) Addr(id int32) net.Addr {
	if p := g.port(id); p != nil {
		return p.l.Addr()
	}
	return nil
}

// Addrs are where all ports listen.
func (g *Gateway) Addrs() (all []net.Addr) {
	g.each(func(p *port) { all = append(all, p.l.Addr()) })
	return all
}

// See opens the ports of brokers that it sees for the first time, and tells of those
// that get none. What was in the way of a port may be gone when it sees the broker again.
func (g *Gateway) See(ids []int32) {
	for _, id := range ids {
		g.openLate(id)
	}
}

// port returns a broker's, opened where that has not been tried; nil if it has none.
func (g *Gateway) port(id int32) *port {
	if p, ok := g.open.Load(id); ok {
		return p.(*port)
	}
	return g.openLate(id)
}

// openLate opens the port of a broker that was not there at the start. Only the first time it
// says why there is none.
func (g *Gateway) openLate(id int32) *port {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, tried := g.open.Load(id)
	if tried && was.(*port) != nil {
		return was.(*port)
	}
	if _, ok := g.listen.of(id); !ok {
		if !tried {
			g.log.Warn().Int32("node", id).Msgf("broker %d has no port here, so that clients are not shown it: add %d=HOST:PORT to gateway.listen", id, id)
		}
		g.open.Store(id, (*port)(nil))
		return nil
	}
	p, err := g.openPort(id)
	if err != nil {
		if !tried {
			g.log.Error().Err(err).Int32("node", id).Msgf("the port for broker %d cannot be opened, so that clients are not shown it until it can: stop what has it, or give the broker another one in gateway.listen", id)
		}
		g.open.Store(id, (*port)(nil))
		return nil
	}
	if g.serve != nil {
		g.serve(p)
	}
	return p
}

func (g *Gateway) openPort(id int32) (*port, error) {
	where, _ := g.listen.of(id)
	l, err := net.Listen("tcp", where.String())
	if err != nil {
		return nil, err
	}
	p := &port{node: id, l: l}
	var ok bool
	if p.at, ok = g.advertise.of(id); !ok {
		p.at = Place{where.Host, l.Addr().(*net.TCPAddr).Port}
		if ip := net.ParseIP(where.Host); where.Host == "" || ip != nil && ip.IsUnspecified() {
			p.at.Host = ""
		}
	}
	g.open.Store(id, p)
	g.log.Info().Int32("node", id).Str("listen", l.Addr().String()).Str("advertised", p.at.String()).Msg("gateway port")
	return p, nil
}

// address is where a client of ours finds a broker. host is that by which it has
// found us.
func (g *Gateway) address(id int32, host string) (Place, bool) {
	p := g.port(id)
	if p == nil {
		return Place{}, false
	}
	if p.at.Host == "" {
		return Place{host, p.at.Port}, true
	}
	return p.at, true
}

// start hands the ports over to a server, now and as they are opened.
func (g *Gateway) start(serve func(*port)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serve = serve
	g.open.Range(func(_, p any) bool {
		if p := p.(*port); p != nil {
			serve(p)
		}
		return true
	})
}

// coordinatorNode is the broker in whose place a client finds the coordinator: the
// one whose port it has come to, so that the load follows the clients', else the
// first that is alive. Clients know it from Metadata by the same address.
func (c *conn) coordinatorNode() int32 {
	live := c.srv.o.Upstream.Live()
	if slices.Contains(live, c.port.node) {
		return c.port.node
	}
	for _, id := range live {
		if c.srv.o.Gateway.port(id) != nil {
			return id
		}
	}
	return -1
}
