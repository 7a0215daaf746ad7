package kafka

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

func nothing(group.Request) (group.Response, error, bool) { return nil, nil, false }

func beat(name string) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID = name, "m"
	return req
}

func joinOf(name string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType = name, "consumer"
	req.SessionTimeoutMillis = 10000
	return req
}

// The frequent requests don't wait for each other's replies, and are answered in
// their order however the replies come.
func TestPipelined(t *testing.T) {
	s := newStage(t, nothing)
	s.topic("t")
	c := s.client()
	const n = 100
	reqs := make([]kmsg.Request, n)
	corrs := make([]int32, n)
	for i := range reqs {
		switch i % 3 {
		case 0:
			reqs[i] = beat("g")
			corrs[i] = c.send(4, reqs[i])
		case 1:
			reqs[i] = commitOf(topicOf("t", [16]byte{}, 0))
			corrs[i] = c.send(9, reqs[i])
		default:
			reqs[i] = fetchOf(9, [16]byte{}, "g")
			corrs[i] = c.send(9, reqs[i])
		}
	}
	waiting := make([]parked, n)
	for i := range waiting {
		waiting[i] = <-s.coord.parked // all are handed over before one is answered
	}
	go func() {
		for _, i := range rand.Perm(n) {
			resp, err, _ := yes(waiting[i].req)
			waiting[i].reply(resp, err)
		}
	}()
	for i := range reqs {
		recv[kmsg.Response](c, corrs[i], reqs[i])
	}
}

// A client that sends without end and reads nothing stops at the window.
func TestWindow(t *testing.T) {
	s := newStage(t, nothing)
	c := s.client()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range 3 * window {
			if _, err := c.nc.Write(frame(1, func() kmsg.Request { r := beat("g"); r.SetVersion(4); return r }())); err != nil {
				return
			}
		}
	}()
	<-sent
	var waiting []parked
	for range window {
		waiting = append(waiting, <-s.coord.parked)
	}
	select {
	case <-s.coord.parked:
		t.Fatal("one more than the window is handed over")
	default:
	}
	waiting[0].reply(kmsg.NewPtrHeartbeatResponse(), nil)
	waiting = append(waiting, <-s.coord.parked)
	for _, w := range waiting[1:] {
		w.reply(kmsg.NewPtrHeartbeatResponse(), nil)
	}
	for range 3*window - window - 1 {
		(<-s.coord.parked).reply(kmsg.NewPtrHeartbeatResponse(), nil)
	}
}

// What is held in memory for a client that reads nothing is bounded in bytes, too.
func TestWindowOfBytes(t *testing.T) {
	all := kmsg.NewPtrOffsetFetchRequest()
	all.Group = "g"
	for name, tc := range map[string]struct {
		version int16
		req     kmsg.Request
		atOnce  int
	}{
		"long requests":       {4, beat(strings.Repeat("g", 30_000)), windowBytes / 30_050},
		"answers of any size": {7, all, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nothing)
			c := s.client()
			for range tc.atOnce + 2 {
				c.send(tc.version, tc.req)
			}
			var waiting []parked
			for range tc.atOnce {
				waiting = append(waiting, <-s.coord.parked)
			}
			for i := range 2 { // each answer lets in one more
				select {
				case <-s.coord.parked:
					t.Fatalf("more than %d are handed over", tc.atOnce)
				default:
				}
				waiting[i].reply(nil, coordinator.ErrLoading)
				waiting = append(waiting, <-s.coord.parked)
			}
			for _, w := range waiting[2:] {
				w.reply(nil, coordinator.ErrLoading)
			}
		})
	}
}

// A parked join holds up the requests after it on its connection, and no other.
func TestParkedJoin(t *testing.T) {
	s := newStage(t, yes)
	c, other := s.client(), s.client()
	join, after := joinOf("g"), beat("g")
	first, second := c.send(9, join), c.send(4, after)
	p := <-s.coord.parked
	for range 10 {
		do[*kmsg.HeartbeatResponse](other, 4, beat("h"))
	}
	if n := s.coord.count(); n != 11 {
		t.Fatalf("%d requests were handed over, not 11: one behind the join was", n)
	}
	p.reply(kmsg.NewPtrJoinGroupResponse(), nil)
	recv[*kmsg.JoinGroupResponse](c, first, join)
	recv[*kmsg.HeartbeatResponse](c, second, after)
}

// A client that goes away leaves its join with the coordinator, as in Kafka; the
// reply to it is dropped.
func TestCloseWhileJoining(t *testing.T) {
	s := newStage(t, yes)
	c := s.client()
	c.send(9, joinOf("g"))
	p := <-s.coord.parked
	c.nc.Close()
	do[*kmsg.HeartbeatResponse](s.client(), 4, beat("h"))
	p.reply(kmsg.NewPtrJoinGroupResponse(), nil)
}

// What is passed on and what is not are answered in one order, and what comes after a
// request that was passed on is decided after it.
func TestPassedOnInOrder(t *testing.T) {
	s := newStage(t, yes)
	c := s.client()
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "made", 1, 1
	create.Topics = append(create.Topics, topic)
	reqs := []kmsg.Request{beat("g"), create, commitOf(topicOf("made", [16]byte{}, 0)), kmsg.NewPtrMetadataRequest(), asker(), kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataRequest(), beat("g")}
	versions := []int16{4, 7, 9, 12, 3, 9, 1, 0}
	corrs := make([]int32, len(reqs))
	for i, req := range reqs {
		corrs[i] = c.send(versions[i], req)
	}
	for i, req := range reqs {
		resp := recv[kmsg.Response](c, corrs[i], req)
		if r, ok := resp.(*kmsg.OffsetCommitResponse); ok && r.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Error("a commit right behind CreateTopics does not see the topic")
		}
	}
}

func (s *stage) shutdown(ctx context.Context) chan error {
	done := make(chan error, 1)
	go func() { done <- s.srv.Shutdown(ctx) }()
	return done
}

// Shutdown lets what is under way be answered; parked joins are told to look elsewhere.
func TestDrain(t *testing.T) {
	s := newStage(t, nothing)
	s.topic("t")
	idle, committing, joining, half := s.client(), s.client(), s.client(), s.client()
	do[*kmsg.ApiVersionsResponse](idle, 0, asker())
	commit, join := commitOf(topicOf("t", [16]byte{}, 0)), joinOf("g")
	c1 := committing.send(9, commit)
	waiting := <-s.coord.parked
	c2 := joining.send(9, join)
	late := <-s.coord.parked
	half.nc.Write([]byte{0, 0, 1, 0, 0})
	done := s.shutdown(context.Background())
	if got := recv[*kmsg.JoinGroupResponse](joining, c2, join); got.ErrorCode != codeNotCoordinator {
		t.Errorf("a parked join got %d", got.ErrorCode)
	}
	joining.closed()
	idle.closed()
	half.closed()
	select {
	case err := <-done:
		t.Fatalf("the server is down with a commit under way: %v", err)
	default:
	}
	resp, _, _ := yes(waiting.req)
	waiting.reply(resp, nil)
	if got := recv[*kmsg.OffsetCommitResponse](committing, c1, commit); shownCommit(got) != "t 0:0; " {
		t.Error(shownCommit(got))
	}
	committing.closed()
	if err := <-done; err != nil {
		t.Error(err)
	}
	late.reply(kmsg.NewPtrJoinGroupResponse(), nil) // too late, and nobody minds
}

// A join that is being handed over when the server is shut down is answered when it has been.
func TestDrainWhileHandingOver(t *testing.T) {
	s := newStage(t, nothing)
	c := s.client()
	do[*kmsg.ApiVersionsResponse](c, 0, asker())
	here := s.srv.connections()[0]
	k, err := here.begin(s.srv.table[11], &header{key: 11, version: 9, correlation: 7}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	here.drain()
	if here.mu.Lock(); k.ready {
		t.Error("it is answered while nobody knows how")
	}
	here.mu.Unlock()
	k.answer = shapeJoin
	here.handed(k)
	join := joinOf("g")
	join.SetVersion(9)
	if got := recv[*kmsg.JoinGroupResponse](c, 7, join); got.ErrorCode != codeNotCoordinator {
		t.Errorf("it got %d", got.ErrorCode)
	}
	c.closed()
}

// The end of its context ends Shutdown, whatever is still under way.
func TestDrainIsBounded(t *testing.T) {
	s := newStage(t, nothing)
	c := s.client()
	c.send(4, beat("g"))
	p := <-s.coord.parked
	ctx, cancel := context.WithCancel(context.Background())
	done := s.shutdown(ctx)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.closed()
	p.reply(nil, coordinator.ErrNotCoordinator)
}

// All answers that are ready go out with one write.
func TestOneWrite(t *testing.T) {
	s := newStage(t, nothing)
	c := s.client()
	for range 50 {
		c.send(4, beat("g"))
	}
	var all []parked
	for range 50 {
		all = append(all, <-s.coord.parked)
	}
	for _, p := range all[1:] {
		p.reply(kmsg.NewPtrHeartbeatResponse(), nil)
	}
	all[0].reply(kmsg.NewPtrHeartbeatResponse(), nil)
	buf := make([]byte, 4096)
	c.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := io.ReadAtLeast(c.nc, buf, 1)
	if err != nil || n != 50*(4+4+1+4+2+1) {
		t.Errorf("the first read has %d bytes (%v), not all 50 answers", n, err)
	}
}

// A client that has sent its last, and still reads, is answered.
func TestSentAll(t *testing.T) {
	s := newStage(t, nothing)
	c := s.client()
	first, second := c.send(4, beat("g")), c.send(4, beat("h"))
	all := []parked{<-s.coord.parked, <-s.coord.parked}
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		p.reply(kmsg.NewPtrHeartbeatResponse(), nil)
	}
	recv[*kmsg.HeartbeatResponse](c, first, beat("g"))
	recv[*kmsg.HeartbeatResponse](c, second, beat("h"))
	c.closed()
}
