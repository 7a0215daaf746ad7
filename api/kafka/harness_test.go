package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/api/kafka/embedded"
	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a coordinator that writes down what it is asked, and replies what on
// says; what on leaves out is parked.
type recorder struct {
	on func(group.Request) (group.Response, error, bool)

	mu     sync.Mutex
	asked  []group.Request
	parked chan parked
}

type parked struct {
	req   group.Request
	reply func(group.Response, error)
}

func newRecorder(on func(group.Request) (group.Response, error, bool)) *recorder {
	return &recorder{on: on, parked: make(chan parked, 1000)}
}

func (r *recorder) Group(req group.Request, reply func(group.Response, error)) {
	r.mu.Lock()
	r.asked = append(r.asked, keepRequest(req))
	r.mu.Unlock()
	if resp, err, now := r.on(req); now {
		reply(resp, err)
		return
	}
	r.parked <- parked{req, reply}
}

// keepRequest copies what is the call's memory, and so the next call's when this is answered.
func keepRequest(req group.Request) group.Request {
	f, is := req.(group.Fetch)
	if !is {
		return req
	}
	g := *f.OffsetFetchRequestGroup
	g.Topics = slices.Clone(g.Topics)
	for i := range g.Topics {
		g.Topics[i].Partitions = slices.Clone(g.Topics[i].Partitions)
	}
	f.OffsetFetchRequestGroup, f.Memory = &g, nil
	return f
}

func (r *recorder) EachGroup(req group.Request, reply func([]group.Response, error)) {
	r.Group(req, func(resp group.Response, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(resp.([]group.Response), nil)
	})
}

// last is the latest request.
func (r *recorder) last() group.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return nil
	}
	return r.asked[len(r.asked)-1]
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// yes replies to everything that all is well; it parks JoinGroup.
func yes(req group.Request) (group.Response, error, bool) {
	switch r := req.(type) {
	case group.Join:
		return nil, nil, false
	case group.Sync:
		return kmsg.NewPtrSyncGroupResponse(), nil, true
	case group.Heartbeat:
		return kmsg.NewPtrHeartbeatResponse(), nil, true
	case group.Leave:
		out := kmsg.NewPtrLeaveGroupResponse()
		for _, m := range r.Members {
			out.Members = append(out.Members, kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID})
		}
		return out, nil, true
	case group.Commit:
		out := kmsg.NewPtrOffsetCommitResponse()
		for _, t := range r.Topics {
			rt := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition})
			}
			out.Topics = append(out.Topics, rt)
		}
		return out, nil, true
	case group.Fetch:
		out := kmsg.NewOffsetFetchResponseGroup()
		out.Group = r.Group
		for _, t := range r.Topics {
			rt := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{Partition: p, Offset: 7, LeaderEpoch: 3, Metadata: kmsg.StringPtr("m")})
			}
			out.Topics = append(out.Topics, rt)
		}
		return &out, nil, true
	case group.DeleteOffsets:
		out := kmsg.NewPtrOffsetDeleteResponse()
		for _, t := range r.Topics {
			rt := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition})
			}
			out.Topics = append(out.Topics, rt)
		}
		return out, nil, true
	case group.Describe:
		return &kmsg.DescribeGroupsResponseGroup{Group: r.Group, State: "Empty"}, nil, true
	case group.Delete:
		return &kmsg.DeleteGroupsResponseGroup{Group: r.Group}, nil, true
	case group.List:
		return []group.Response{[]kmsg.ListGroupsResponseGroup{{Group: "a"}}, []kmsg.ListGroupsResponseGroup{{Group: "b"}}}, nil, true
	}
	panic(fmt.Sprintf("%T", req))
}

// lines keeps log lines, and tells when one has come.
type lines struct {
	mu   sync.Mutex
	all  bytes.Buffer
	came chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.came <- struct{}{}:
	default:
	}
	return l.all.Write(b)
}

// await waits until the log holds s.
func (l *lines) await(t testing.TB, s string) string {
	t.Helper()
	for limit := time.After(10 * time.Second); ; {
		l.mu.Lock()
		all := l.all.String()
		l.mu.Unlock()
		if bytes.Contains([]byte(all), []byte(s)) {
			return all
		}
		select {
		case <-l.came:
		case <-limit:
			t.Fatalf("no log line with %q in:\n%s", s, all)
		}
	}
}

// stage is a server with a coordinator that records and a broker behind.
type stage struct {
	t      testing.TB
	coord  *recorder
	srv    *Server
	up     *upstream.Broker
	addr   string
	log    *lines
	broker *embedded.Broker
	passTo atomic.Pointer[func() (net.Conn, error)] // where requests are passed on to, when not to broker
}

func newStage(t testing.TB, on func(group.Request) (group.Response, error, bool), change ...func(*Options)) *stage {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, coord: newRecorder(on), addr: l.Addr().String(), log: &lines{came: make(chan struct{}, 1)}}
	log := zerolog.New(s.log)
	if s.broker, err = embedded.Start(embedded.Options{Advertised: s.addr, AutoCreateTopics: true, Partitions: 2, Log: log}); err != nil {
		t.Fatal(err)
	}
	s.up = upstream.Open(upstream.Options{Log: log, Dial: func(ctx context.Context) (net.Conn, error) {
		if f := s.passTo.Load(); f != nil {
			return (*f)()
		}
		return s.broker.Dial(ctx)
	}})
	<-s.up.Ready()
	o := Options{Coordinator: s.coord, Transactions: noTransactions{}, OffsetsPartitions: 50, Upstream: s.up, Log: log}
	for _, c := range change {
		c(&o)
	}
	s.srv = New(o)
	served := make(chan error, 1)
	go func() { served <- s.srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // tests that want it gentle do it themselves
		s.srv.Shutdown(ctx)
		if err := <-served; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		s.up.Close()
		s.broker.Close()
	})
	return s
}

// client is a raw connection.
type client struct {
	t    testing.TB
	nc   net.Conn
	corr int32
}

func (s *stage) client() *client {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { nc.Close() })
	return &client{t: s.t, nc: nc}
}

func frame(corr int32, req kmsg.Request) []byte {
	id := "tester"
	buf := make([]byte, 4, 256)
	buf = kbin.AppendInt16(buf, req.Key())
	buf = kbin.AppendInt16(buf, req.GetVersion())
	buf = kbin.AppendInt32(buf, corr)
	buf = kbin.AppendNullableString(buf, &id)
	if req.IsFlexible() {
		buf = append(buf, 0)
	}
	buf = req.AppendTo(buf)
	binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
	return buf
}

// send sends a request and returns its correlation id.
func (c *client) send(version int16, req kmsg.Request) int32 {
	c.t.Helper()
	req.SetVersion(version)
	c.corr++
	if _, err := c.nc.Write(frame(c.corr, req)); err != nil {
		c.t.Fatal(err)
	}
	return c.corr
}

// readFrame reads what a length precedes.
func readFrame(nc net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(nc, b)
	return b, err
}

// raw reads one answer: its correlation id and what follows.
func (c *client) raw() (int32, []byte, error) {
	c.nc.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := readFrame(c.nc)
	if err != nil {
		return 0, nil, err
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:], nil
}

// recv reads the answer to a request.
func recv[R kmsg.Response](c *client, corr int32, req kmsg.Request) R {
	c.t.Helper()
	got, body, err := c.raw()
	if err != nil {
		c.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	if got != corr {
		c.t.Fatalf("answer to %d, not %d", got, corr)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != 18 {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		c.t.Fatal(err)
	}
	return resp.(R)
}

// do sends a request and reads the answer.
func do[R kmsg.Response](c *client, version int16, req kmsg.Request) R {
	c.t.Helper()
	return recv[R](c, c.send(version, req), req)
}

// closed waits until the server hangs up.
func (c *client) closed() {
	c.t.Helper()
	if _, _, err := c.raw(); err == nil {
		c.t.Fatal("an answer, where the connection should have ended")
	} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		c.t.Fatal("the connection did not end")
	}
}

// topic makes a topic of two partitions and returns its id.
func (s *stage) topic(name string) [16]byte {
	s.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, 2, 1
	req.Topics = append(req.Topics, t)
	resp := do[*kmsg.CreateTopicsResponse](s.client(), 7, req)
	if resp.Topics[0].ErrorCode != 0 {
		s.t.Fatal(resp.Topics[0].ErrorCode)
	}
	return resp.Topics[0].TopicID
}
