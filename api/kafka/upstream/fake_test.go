package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker answers ApiVersions and Metadata as it is told to.
type broker struct {
	mu      sync.Mutex
	topics  map[string]Topic
	down    bool
	hangs   bool                                                     // takes requests, and answers none
	odd     func(*kmsg.MetadataRequest, *kmsg.MetadataResponse) bool // changes an answer; false: hangs up
	asked   int                                                      // Metadata requests
	cluster string
	nodes   []int32 // that it names, at host "node" and a port of their id; nil: itself alone
}

func newBroker(topics ...Topic) *broker {
	b := &broker{topics: map[string]Topic{}, cluster: "c"}
	for _, t := range topics {
		b.topics[t.Name] = t
	}
	return b
}

// with changes what the broker knows.
func (b *broker) with(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *broker) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// open starts a Broker in front of it.
func (b *broker) open(t *testing.T, o Options) *Broker {
	o.Dial = b.dial
	up := Open(o)
	t.Cleanup(up.Close)
	return up
}

func (b *broker) dial(context.Context) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errors.New("refused")
	}
	ours, theirs := net.Pipe()
	go b.serve(theirs)
	return ours, nil
}

func (b *broker) serve(nc net.Conn) {
	defer nc.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(nc, size[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(nc, body); err != nil {
			return
		}
		r := kbin.Reader{Src: body}
		key, version, corr := r.Int16(), r.Int16(), r.Int32()
		r.NullableString()
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		if req.IsFlexible() {
			r.Src = r.Src[1:]
		}
		if err := req.ReadFrom(r.Src); err != nil {
			return
		}
		resp := b.answer(req)
		if resp == nil {
			return
		}
		if b.isHanging() {
			continue
		}
		out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(corr))
		if resp.IsFlexible() && key != 18 {
			out = append(out, 0)
		}
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

func (b *broker) isHanging() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hangs
}

func (b *broker) answer(req kmsg.Request) kmsg.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := req.ResponseKind()
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		if req.Version > 3 { // a broker of 3.x
			resp.SetVersion(0)
			resp.(*kmsg.ApiVersionsResponse).ErrorCode = kerr.UnsupportedVersion.Code
			return resp
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MaxVersion = 3, 12
		resp.(*kmsg.ApiVersionsResponse).ApiKeys = append(resp.(*kmsg.ApiVersionsResponse).ApiKeys, k)
	case *kmsg.MetadataRequest:
		b.asked++
		if b.down {
			return nil
		}
		b.metadata(req, resp.(*kmsg.MetadataResponse))
		if b.odd != nil && !b.odd(req, resp.(*kmsg.MetadataResponse)) {
			return nil
		}
	}
	return resp
}

func (b *broker) metadata(req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	resp.ClusterID = &b.cluster
	br := kmsg.NewMetadataResponseBroker()
	br.NodeID, br.Host, br.Port = 4, "h", 1
	resp.Brokers = append(resp.Brokers, br)
	if b.nodes != nil {
		resp.Brokers = nil
	}
	for _, id := range b.nodes {
		br.NodeID, br.Host, br.Port = id, "node", id
		resp.Brokers = append(resp.Brokers, br)
	}
	if req.Topics == nil {
		for _, t := range b.topics {
			resp.Topics = append(resp.Topics, shown(t))
		}
		return
	}
	byID := slices.ContainsFunc(req.Topics, func(rt kmsg.MetadataRequestTopic) bool { return rt.TopicID != ([16]byte{}) })
	for _, rt := range req.Topics {
		if byID && rt.TopicID == ([16]byte{}) {
			continue // as Kafka does
		}
		out := kmsg.NewMetadataResponseTopic()
		out.Topic, out.TopicID, out.ErrorCode = rt.Topic, rt.TopicID, kerr.UnknownTopicOrPartition.Code
		if rt.Topic == nil {
			out.ErrorCode = kerr.UnknownTopicID.Code
		}
		for _, t := range b.topics {
			if rt.Topic != nil && *rt.Topic == t.Name || rt.Topic == nil && rt.TopicID == t.ID {
				out = shown(t)
			}
		}
		resp.Topics = append(resp.Topics, out)
	}
}

func shown(t Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID = kmsg.StringPtr(t.Name), t.ID
	for p := range t.Partitions {
		out.Partitions = append(out.Partitions, kmsg.MetadataResponseTopicPartition{Partition: p})
	}
	return out
}
