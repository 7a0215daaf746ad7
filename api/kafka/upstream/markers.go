package upstream

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/marker"
)

// markerTimeout bounds the answer to WriteTxnMarkers, for which a broker waits until its
// followers have the markers.
const markerTimeout = 15 * time.Second

// Markers is how transaction markers reach the cluster. It has connections of its own,
// so that a broker which is slow to write markers keeps no other question waiting.
type Markers struct {
	b *Broker

	mu     sync.Mutex // of all that follows
	routes *link
	addrs  map[int32]string // where brokers are, as told
	alone  bool             // there is one broker, which is behind
	nodes  map[int32]*markerLink
}

// markerLink is the connection to one broker.
type markerLink struct {
	mu  sync.Mutex // held while a request is under way
	l   *link
	max int16 // the highest version of WriteTxnMarkers that it has
}

// Markers returns what markers are sent over. It is called once.
func (b *Broker) Markers() *Markers {
	l := b.link()
	l.timeout = b.o.Timeout
	return &Markers{b: b, routes: l, addrs: map[int32]string{}, nodes: map[int32]*markerLink{}}
}

// Route is part of marker.Brokers.
func (m *Markers) Route(ctx context.Context, topics []string) (map[string]marker.Route, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp, err := m.routes.metadata(ctx, topics, nil)
	switch {
	case err != nil:
		return nil, err
	case len(resp.Brokers) == 0:
		return nil, fmt.Errorf("upstream: an answer to Metadata without brokers")
	case m.otherCluster(resp):
		return nil, ErrOtherCluster
	}
	m.alone = len(resp.Brokers) == 1
	for _, br := range resp.Brokers {
		m.addrs[br.NodeID] = hostPort(br.Host, br.Port)
	}
	routes := make(map[string]marker.Route, len(resp.Topics))
	for i := range resp.Topics {
		if rt := &resp.Topics[i]; rt.Topic != nil {
			if r, told := routeOf(rt); told {
				routes[*rt.Topic] = r
			}
		}
	}
	return routes, nil
}

// otherCluster says whether an answer comes from another cluster than the view's: its
// topics say nothing about those that markers are for.
func (m *Markers) otherCluster(resp *kmsg.MetadataResponse) bool {
	c, known := m.b.Cluster()
	return known && c.ID != "" && resp.ClusterID != nil && *resp.ClusterID != c.ID
}

// routeOf is what an answer says of a topic. With any error but those of topics that do not
// exist it says nothing.
func routeOf(t *kmsg.MetadataResponseTopic) (r marker.Route, told bool) {
	switch t.ErrorCode {
	case kerr.UnknownTopicOrPartition.Code, kerr.InvalidTopicException.Code:
		return marker.Route{Absent: true}, true
	case 0, kerr.LeaderNotAvailable.Code:
	default:
		return r, false
	}
	r.Leaders = make(map[int32]int32, len(t.Partitions))
	for _, p := range t.Partitions {
		r.Leaders[p.Partition] = p.Leader
		if p.ErrorCode == kerr.LeaderNotAvailable.Code {
			r.Leaders[p.Partition] = -1
		}
	}
	return r, true
}

// Write is part of marker.Brokers. Version 1 is the newest that says nothing of the transaction's
// version: from 2 on a broker takes a marker that comes again for one of an epoch that is over.
func (m *Markers) Write(ctx context.Context, node int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	n := m.node(node)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.l.open(ctx); err != nil {
		return nil, err
	}
	req.Version = min(1, n.max)
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	return resp, n.l.ask(ctx, req, resp)
}

func (m *Markers) node(id int32) *markerLink {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[id]
	if n == nil {
		n = &markerLink{max: 1}
		n.l = &link{timeout: markerTimeout, dial: func(ctx context.Context) (net.Conn, error) { return m.dial(ctx, id) }}
		n.l.told = func(resp *kmsg.ApiVersionsResponse) {
			for _, k := range resp.ApiKeys {
				if k.ApiKey == 27 {
					n.max = k.MaxVersion
				}
			}
		}
		m.nodes[id] = n
	}
	return n
}

// dial connects to a broker. The one behind a sidecar is said to be where the sidecar is, so
// that it is not asked for there.
func (m *Markers) dial(ctx context.Context, id int32) (net.Conn, error) {
	m.mu.Lock()
	addr, known, alone := m.addrs[id], m.addrs[id] != "", m.alone
	m.mu.Unlock()
	c, _ := m.b.Cluster()
	switch {
	case !m.b.gateway() && (alone || id == c.NodeID):
		return m.b.Dial(ctx)
	case !known:
		return nil, fmt.Errorf("upstream: broker %d was not seen yet", id)
	}
	return m.b.dialTo(ctx, addr)
}

// Close ends the connections. Nobody may be using them.
func (m *Markers) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.routes.close()
	for _, n := range m.nodes {
		n.l.close()
	}
}
