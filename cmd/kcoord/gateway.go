package main

import (
	"context"
	"net"
	"slices"

	"github.com/kcoord/kcoord/api/kafka"
	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/config"
)

// openGateway opens the ports that stand for a cluster's brokers, where there are to be some.
func (s *server) openGateway() error {
	if s.config.GatewayListen.Empty() {
		return nil
	}
	g, err := kafka.OpenGateway(portsOf(s.config.GatewayListen), portsOf(s.config.GatewayAdvertise), s.log)
	if err != nil {
		return mistake{err}
	}
	s.gateway = g
	s.later(func(context.Context) error { g.Close(); return nil }) // for the case that nobody comes to serve them
	return nil
}

func portsOf(said config.Ports) kafka.Ports {
	p := kafka.Ports{Nodes: make(map[int32]kafka.Place, len(said.Nodes))}
	for id, at := range said.Nodes {
		p.Nodes[id] = kafka.Place(at)
	}
	if said.Rest != nil {
		rest := kafka.Place(*said.Rest)
		p.Rest = &rest
	}
	return p
}

// own says which connections have led back to this process.
func (s *server) own(kafka net.Addr) func(net.Conn) bool {
	return func(nc net.Conn) bool {
		leads := func(l net.Addr) bool { return upstream.LeadsTo(nc, l) }
		return leads(kafka) || s.gateway != nil && slices.ContainsFunc(s.gateway.Addrs(), leads)
	}
}
