package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// behindTest is a broker made of bytes: what came, and what goes back.
type behindTest struct {
	l    net.Listener
	came chan []byte // frames without their lengths
	nc   chan net.Conn
}

// passOnTo lets what a stage passes on go to a broker made of bytes.
func (s *stage) passOnTo() *behindTest {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	b := &behindTest{l: l, came: make(chan []byte, 1000), nc: make(chan net.Conn, 10)}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			b.nc <- nc
			go func() {
				defer nc.Close()
				for {
					f, err := readFrame(nc)
					if err != nil {
						return
					}
					b.came <- f
				}
			}()
		}
	}()
	dial := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	s.passTo.Store(&dial)
	return b
}

func answerTo(request []byte, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	return append(append(out, request[4:8]...), body...)
}

// Whatever is not ours goes to the broker and comes back byte for byte, in every
// version, and whatever its size.
func TestByteForByte(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	random := rand.NewChaCha8([32]byte{1})
	sizes := []int{0, 1, 100, 5000, flushAt/4 - 1, flushAt / 4, flushAt + 1, 200_000, 3 << 20}
	n := 0
	for _, a := range served(2) {
		if a.handle != nil {
			continue
		}
		for v := a.min; v <= a.max; v++ {
			body := make([]byte, sizes[n%len(sizes)])
			random.Read(body)
			if a.key == 0 { // with acks, and without a transactional id
				body = append([]byte{0, 1, 0, 1}, body...)
				if v >= 3 && v < 9 {
					body = append([]byte{0xff, 0xff, 0, 1}, body...)
				} else if v >= 9 {
					body = append([]byte{0, 0, 0, 1}, body...)
				}
			}
			sent := headed(a.key, v, body...)
			back := make([]byte, sizes[(n+4)%len(sizes)])
			random.Read(back)
			go c.nc.Write(sent)
			got := <-b.came
			if !bytes.Equal(got, sent[4:]) {
				t.Fatalf("%s v%d of %d bytes is not what was sent", kmsg.NameForKey(a.key), v, len(sent))
			}
			if n == 0 {
				defer func(nc net.Conn) { nc.Close() }(b.conn(t))
			}
			b.write(t, answerTo(got, back))
			_, body, err := c.raw()
			if err != nil || !bytes.Equal(body, back) {
				t.Fatalf("the answer to %s v%d of %d bytes is not what the broker wrote (%v)", kmsg.NameForKey(a.key), v, len(back), err)
			}
			n++
		}
	}
	if n < 80 {
		t.Fatalf("%d requests only", n)
	}
}

// conn is the connection from the sidecar; write writes to it.
func (b *behindTest) conn(t *testing.T) net.Conn {
	t.Helper()
	select {
	case nc := <-b.nc:
		b.nc <- nc
		return nc
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was passed on")
		return nil
	}
}

// answered has a client's request passed on and answered, and returns the connection that this went over.
func (b *behindTest) answered(t *testing.T, c *client) net.Conn {
	t.Helper()
	c.nc.Write(headed(3, 9, 0))
	nc := b.conn(t)
	nc.Write(answerTo(<-b.came, []byte("answer")))
	if _, body, err := c.raw(); err != nil || string(body) != "answer" {
		t.Fatal(string(body), err)
	}
	return nc
}

func (b *behindTest) write(t *testing.T, p []byte) {
	nc := b.conn(t)
	go nc.Write(p)
}

// Produce with acks=0 has no answer: what comes after it is answered next.
func TestProduceWithoutAcks(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	for _, sent := range [][]byte{
		headed(0, 0, 0, 0, 0, 0, 0, 0),
		headed(0, 3, 0xff, 0xff, 0, 0, 9),
		headed(0, 9, append([]byte{0, 0, 0, 0}, make([]byte, 1000)...)...),
	} {
		if _, err := c.nc.Write(sent); err != nil {
			t.Fatal(err)
		}
		if got := <-b.came; !bytes.Equal(got, sent[4:]) {
			t.Fatal("not what was sent")
		}
		do[*kmsg.HeartbeatResponse](c, 4, beat("g"))
	}
	c.nc.Write(headed(0, 9, 0, 0xff, 0xff, 0xff, 0x0f)) // an id that is longer than any
	c.closed()
}

func TestBrokerUnreachable(t *testing.T) {
	s := newStage(t, yes)
	s.topic("t")
	down := func() (net.Conn, error) { return nil, errors.New("refused") }
	s.passTo.Store(&down)
	c, other := s.client(), s.client()
	do[*kmsg.ApiVersionsResponse](c, 4, asker())
	c.send(9, kmsg.NewPtrMetadataRequest())
	c.closed()
	s.log.await(t, "the broker behind cannot be reached")
	for range 3 {
		do[*kmsg.HeartbeatResponse](other, 4, beat("g"))
		if got := do[*kmsg.OffsetCommitResponse](other, 9, commitOf(topicOf("t", [16]byte{}, 0))); shownCommit(got) != "t 0:0; " {
			t.Error(shownCommit(got))
		}
	}
}

// When the broker hangs up, so do we: the client would wait for ever otherwise, and
// goes on elsewhere.
func TestBrokerHangsUp(t *testing.T) {
	for name, with := range map[string]func(net.Conn, []byte){
		"without an answer":     func(nc net.Conn, _ []byte) { nc.Close() },
		"in an answer's head":   func(nc net.Conn, req []byte) { nc.Write(answerTo(req, nil)[:6]); nc.Close() },
		"in an answer's body":   func(nc net.Conn, req []byte) { nc.Write(answerTo(req, make([]byte, 100))[:50]); nc.Close() },
		"in a long answer":      func(nc net.Conn, req []byte) { nc.Write(answerTo(req, make([]byte, 1<<20))[:9999]); nc.Close() },
		"answer to another":     func(nc net.Conn, req []byte) { nc.Write(answerTo([]byte("....NONE"), nil)) },
		"answer of no length":   func(nc net.Conn, req []byte) { nc.Write(make([]byte, 8)) },
		"answer that was twice": func(nc net.Conn, req []byte) { nc.Write(append(answerTo(req, nil), answerTo(req, nil)...)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, yes)
			b := s.passOnTo()
			c := s.client()
			c.nc.Write(headed(3, 9, 0))
			req := <-b.came
			with(b.conn(t), req)
			for {
				if _, err := c.nc.Read(make([]byte, 1000)); err != nil {
					break
				}
			}
			do[*kmsg.HeartbeatResponse](s.client(), 4, beat("g"))
		})
	}
}

// An idle client notices, too, that the broker behind has gone. It is no warning: brokers close
// what has been idle.
func TestBrokerGoesWhileIdle(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	b.answered(t, c).Close()
	c.closed()
	if log := s.log.await(t, "hung up while nothing was asked of it"); strings.Contains(log, `"level":"warn"`) {
		t.Errorf("the log is\n%s", log)
	}
}

// A client that reads nothing stops itself: the broker cannot write on, and others can.
func TestBackpressure(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	c.nc.Write(headed(1, 12, 0))
	req := <-b.came
	nc := b.conn(t)
	const size = 64 << 20
	written := make(chan int, 1)
	go func() {
		n, _ := nc.Write(answerTo(req, make([]byte, size)))
		written <- n
	}()
	for range 100 {
		do[*kmsg.HeartbeatResponse](s.client(), 4, beat("g"))
	}
	select {
	case n := <-written:
		t.Fatalf("%d bytes went to a client that does not read", n)
	default:
	}
	if _, body, err := c.raw(); err != nil || len(body) != size {
		t.Fatal(len(body), err)
	}
	<-written
}

// A real client through it all: topics, records, metadata of the sidecar's address.
func TestFranzThrough(t *testing.T) {
	s := newStage(t, yes)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("made"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	const n = 1000
	for i := range n {
		cl.Produce(ctx, &kgo.Record{Topic: "made", Value: bytes.Repeat(fmt.Append(nil, i, " "), 300)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < n; {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		got += f.NumRecords()
	}
	md := kmsg.NewPtrMetadataRequest()
	resp := do[*kmsg.MetadataResponse](s.client(), 12, md)
	if at := net.JoinHostPort(resp.Brokers[0].Host, fmt.Sprint(resp.Brokers[0].Port)); len(resp.Brokers) != 1 || at != s.addr {
		t.Errorf("metadata says %s, not %s", at, s.addr)
	}
	dc := do[*kmsg.DescribeClusterResponse](s.client(), 1, kmsg.NewPtrDescribeClusterRequest())
	if at := net.JoinHostPort(dc.Brokers[0].Host, fmt.Sprint(dc.Brokers[0].Port)); len(dc.Brokers) != 1 || at != s.addr {
		t.Errorf("DescribeCluster says %s, not %s", at, s.addr)
	}
}

// A topic that a client has just deleted through us is gone for the next commit,
// however fresh the view is.
func TestDeletedThroughUs(t *testing.T) {
	s := newStage(t, yes)
	s.topic("t")
	c := s.client()
	commit := commitOf(topicOf("t", [16]byte{}, 0))
	if got := do[*kmsg.OffsetCommitResponse](c, 9, commit); shownCommit(got) != "t 0:0; " {
		t.Fatal(shownCommit(got))
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TopicNames = []string{"t"}
	del.Topics = append(del.Topics, kmsg.DeleteTopicsRequestTopic{Topic: ptr("t")})
	if got := do[*kmsg.DeleteTopicsResponse](c, 5, del); got.Topics[0].ErrorCode != 0 {
		t.Fatal(got.Topics[0].ErrorCode)
	}
	if got := do[*kmsg.OffsetCommitResponse](c, 9, commit); shownCommit(got) != "t 0:3; " {
		t.Fatal(shownCommit(got))
	}
}

// Shutting down in the middle of a long request to the broker ends.
func TestDrainInTheMiddle(t *testing.T) {
	s := newStage(t, yes)
	b := s.passOnTo()
	c := s.client()
	c.nc.Write(headed(3, 9, make([]byte, 1<<20)...)[:100_000])
	b.conn(t)
	if err := <-s.shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := c.nc.Read(make([]byte, 1000)); err != nil {
			break
		}
	}
}
