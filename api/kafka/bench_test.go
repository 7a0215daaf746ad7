package kafka

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// The answers of a coordinator that costs nothing, so that what is measured is the listener.
var (
	benchBeat   = kmsg.NewPtrHeartbeatResponse()
	benchCommit = &kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{{Topic: "t", Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, 10)}}}
	benchFetch  = &kmsg.OffsetFetchResponseGroup{Group: "g"}
)

type free struct{}

func (free) Group(req group.Request, reply func(group.Response, error)) {
	switch req.(type) {
	case group.Heartbeat:
		reply(benchBeat, nil)
	case group.Commit:
		reply(benchCommit, nil)
	case group.Fetch:
		reply(benchFetch, nil)
	}
}

func (free) EachGroup(group.Request, func([]group.Response, error)) {}

// BenchmarkRequests sends one request after the other, or 32 at a time. Its
// allocations are those of the listener alone: the client makes none.
func BenchmarkRequests(b *testing.B) {
	ten := make([]int32, 10)
	for name, req := range map[string]kmsg.Request{
		"Heartbeat":      beat("g"),
		"OffsetCommit":   commitOf(topicOf("t", [16]byte{}, ten...)),
		"OffsetCommit-m": commitOf(topicOf("t", [16]byte{}, ten...)), // with metadata
		"OffsetFetch":    fetchOf(8, [16]byte{}, "g"),
	} {
		req.SetVersion(min(req.MaxVersion(), 9))
		if c, ok := req.(*kmsg.OffsetCommitRequest); ok && name == "OffsetCommit" {
			for i := range c.Topics[0].Partitions {
				c.Topics[0].Partitions[i].Metadata = ptr("")
			}
		}
		b.Run(name+"/tcp", func(b *testing.B) { benchmark(b, req, 1, dialTCP) })
		b.Run(name+"/tcp32", func(b *testing.B) { benchmark(b, req, 32, dialTCP) })
		b.Run(name+"/pipe", func(b *testing.B) { benchmark(b, req, 1, dialPipe) })
	}
}

func dialTCP(s *stage) net.Conn { return s.client().nc }

func dialPipe(s *stage) net.Conn {
	ours, theirs := net.Pipe()
	s.srv.accept(theirs, &port{node: -1})
	return ours
}

func benchmark(b *testing.B, req kmsg.Request, depth int, dial func(*stage) net.Conn) {
	s := newStage(b, yes, func(o *Options) { o.Coordinator = free{} })
	s.topic("t")
	nc := dial(s)
	defer nc.Close()
	one := frame(1, req)
	var sent []byte
	for range depth {
		sent = append(sent, one...)
	}
	if _, err := nc.Write(one); err != nil {
		b.Fatal(err)
	}
	first := make([]byte, 4096)
	n, err := io.ReadAtLeast(nc, first, 1)
	if err != nil {
		b.Fatal(err)
	}
	answers := make([]byte, n*depth)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += depth {
		if _, err := nc.Write(sent); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, answers); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnknownTopics answers a commit of ten thousand topics that do not exist.
func BenchmarkUnknownTopics(b *testing.B) {
	s := newStage(b, yes)
	k := &call{c: &conn{srv: s.srv}, api: s.srv.table[8], version: 9}
	for i := range 10_000 {
		k.commit.failed = append(k.commit.failed, failure{topic: fmt.Sprint("topic-", i), code: codeUnknownTopicOrPartition})
	}
	b.ReportAllocs()
	for b.Loop() {
		if resp := shapeCommit(k, kmsg.NewPtrOffsetCommitResponse(), nil).(*kmsg.OffsetCommitResponse); len(resp.Topics) != 10_000 {
			b.Fatal(len(resp.Topics))
		}
	}
}
