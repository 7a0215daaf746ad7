package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// TestTransitions tries every step from every state against the whole table.
func TestTransitions(t *testing.T) {
	all := []groupState{stateEmpty, statePreparing, stateCompleting, stateStable, stateDead}
	allowed := map[[2]groupState]bool{
		{stateEmpty, statePreparing}:      true,
		{stateStable, statePreparing}:     true,
		{stateCompleting, statePreparing}: true,
		{statePreparing, stateCompleting}: true,
		{statePreparing, stateEmpty}:      true,
		{stateCompleting, stateStable}:    true,
	}
	for _, s := range all {
		allowed[[2]groupState{s, stateDead}] = true
	}
	for _, from := range all {
		for _, to := range all {
			g := &liveGroup{id: "g", state: from}
			said := func() (said any) {
				defer func() { said = recover() }()
				g.to(to, epoch)
				return nil
			}()
			switch want := fmt.Sprintf("group %q: from %v to %v", "g", from, to); {
			case allowed[[2]groupState{from, to}] && (said != nil || g.state != to || g.previous != from || !g.since.Equal(epoch)):
				t.Errorf("from %v to %v: %v, %+v", from, to, said, g)
			case !allowed[[2]groupState{from, to}] && said != want:
				t.Errorf("from %v to %v: %v", from, to, said)
			}
		}
	}
}

func TestCodes(t *testing.T) {
	for c, want := range map[int16]*kerr.Error{
		unknownServerError: kerr.UnknownServerError, offsetMetadataTooLarge: kerr.OffsetMetadataTooLarge,
		coordinatorLoadInProgress: kerr.CoordinatorLoadInProgress, illegalGeneration: kerr.IllegalGeneration,
		inconsistentGroupProtocol: kerr.InconsistentGroupProtocol, invalidGroupID: kerr.InvalidGroupID,
		unknownMemberID: kerr.UnknownMemberID, invalidSessionTimeout: kerr.InvalidSessionTimeout,
		rebalanceInProgress: kerr.RebalanceInProgress, nonEmptyGroup: kerr.NonEmptyGroup, groupIDNotFound: kerr.GroupIDNotFound,
		memberIDRequired: kerr.MemberIDRequired, groupMaxSizeReached: kerr.GroupMaxSizeReached,
		fencedInstanceID: kerr.FencedInstanceID, groupSubscribedToTopic: kerr.GroupSubscribedToTopic,
	} {
		if c != want.Code {
			t.Errorf("%s is %d, not %d", want.Message, want.Code, c)
		}
	}
}

// TestEvictWaits: what was written may not be read from the log before it is
// durable there, and least of all what was deleted.
func TestEvictWaits(t *testing.T) {
	h := newHarness(t.Fatalf)
	h.cfg.ResidentOffsets = 1
	h.open()
	m := h.m
	step := func(at storage.Offset, req Request) storage.Offset {
		var out output
		id, _ := req.Entity()
		m.Loaded(epoch, id, &out)
		m.Handle(epoch, machine.Input[Request]{Token: 1, Req: req}, &out)
		for _, r := range out.Records {
			m.Apply(at, &r)
			at++
		}
		return at
	}
	end := step(0, Commit{commitOf("a", 2)})
	end = step(end, Delete{"a"})
	end = step(end, Commit{commitOf("b", 1)})
	for durable := range end {
		if m.Evict(durable); durable <= 3 && !m.Has("a") {
			t.Fatalf("a was evicted when %d records were durable", durable)
		}
	}
	m.Evict(end)
	if m.Has("a") || !m.Has("b") {
		t.Fatalf("a in memory: %v, b: %v", m.Has("a"), m.Has("b"))
	}
	if len(m.dir) != 1 {
		t.Fatalf("a deleted group is still known")
	}
}

func TestSubscription(t *testing.T) {
	good := subscriptionOf("t", "u")
	for name, c := range map[string]struct {
		in     string
		topics []string
		ok     bool
	}{
		"two topics":        {good, []string{"t", "u"}, true},
		"a later version":   {"\x00\x09" + good[2:] + "more", []string{"t", "u"}, true},
		"no topics":         {"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", nil, true},
		"user data":         {"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x", nil, true},
		"nothing":           {"", nil, false},
		"only a version":    {"\x00\x00", nil, false},
		"cut in a topic":    {good[:9], nil, false},
		"cut user data":     {good[:len(good)-1], nil, false},
		"negative version":  {"\xff\xff" + good[2:], nil, false},
		"null topics":       {"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", nil, false},
		"a null topic":      {"\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff", nil, false},
		"far too many":      {"\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff", nil, false},
		"long user data":    {"\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff", nil, false},
		"the word range":    {"range", nil, false},
		"zeros are no name": {"\x00\x00\x00\x00\x00\x01\x00\x00\xff\xff\xff\xff", []string{""}, true},
	} {
		topics := map[string]struct{}{}
		ok := subscription([]byte(c.in), topics)
		var got []string
		for s := range topics {
			got = append(got, s)
		}
		slices.Sort(got)
		if ok != c.ok || ok && !slices.Equal(got, c.topics) {
			t.Errorf("%s: %v %q", name, ok, got)
		}
	}
}

// TestBucket knows where a Java HashMap puts these.
func TestBucket(t *testing.T) {
	for s, want := range map[string]uint32{
		"": 0, "a": 1, "range": 9, "sticky": 8, "roundrobin": 10, "cooperative-sticky": 15, "𝄞": 1,
	} {
		if got := bucket(s, 16); got != want {
			t.Errorf("%q: %d, not %d", s, got, want)
		}
	}
}

// TestTooLong: what no record can hold is refused, and breaks nothing.
func TestTooLong(t *testing.T) {
	h := newHarness(t.Fatalf)
	h.open()
	long := string(make([]byte, 1<<15))
	join := func(change func(*Join)) int16 {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Group, r.ProtocolType, r.SessionTimeoutMillis = "g", "consumer", 10_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		j := Join{Client{"c", "/127.0.0.1"}, r, false, false}
		change(&j)
		var code int16
		h.seen = func(_ string, resp Response) { code = resp.(*kmsg.JoinGroupResponse).ErrorCode }
		h.do("join", j)
		return code
	}
	for name, change := range map[string]func(*Join){
		"client":   func(j *Join) { j.Client.ID = long },
		"instance": func(j *Join) { j.InstanceID = &long },
		"type":     func(j *Join) { j.ProtocolType = long },
		"protocol": func(j *Join) { j.Protocols[0].Name = long },
	} {
		if c := join(change); c != unknownServerError {
			t.Errorf("%s: %d", name, c)
		}
	}
	if c := join(func(j *Join) { j.JoinGroupRequest.Group = long }); c != invalidGroupID {
		t.Errorf("group: %d", c)
	}
	h.seen = nil
	c := commitOf(long, 1)
	h.do("commit", Commit{c})
	c = commitOf("g", 1)
	c.Topics[0].Topic = long
	h.do("commit", Commit{c})
	for _, r := range h.log {
		if r.Kind != state.KindGroup || r.Group != "g" {
			t.Errorf("written: %+v", r)
		}
	}
}

func commitOf(group string, partitions int32) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.Generation, r.RetentionTimeMillis = group, -1, -1
	t := kmsg.OffsetCommitRequestTopic{Topic: "t"}
	for p := range partitions {
		t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 1, LeaderEpoch: -1})
	}
	r.Topics = append(r.Topics, t)
	return r
}

// served is a machine with groups as the runner has them.
type served struct {
	m   *Machine
	out output
	end storage.Offset
	now time.Time
}

func serve() *served {
	h := newHarness(func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) })
	return &served{m: New(h.cfg, &h.rand), now: epoch}
}

func (s *served) do(req Request) Response {
	id, _ := s.m.Touches(req)
	if !s.m.Has(id) {
		s.m.Loaded(s.now, id, &s.out)
	}
	s.m.Handle(s.now, machine.Input[Request]{Token: 1, Req: req}, &s.out)
	for i := range s.out.Records {
		s.m.Apply(s.end, &s.out.Records[i])
		s.end++
	}
	var resp Response
	if len(s.out.Replies) > 0 {
		resp = s.out.Replies[0].Resp
	}
	s.out.Reset()
	return resp
}

func BenchmarkCommit(b *testing.B) {
	s := serve()
	req := Request(Commit{commitOf("g", 10)})
	b.ReportAllocs()
	for b.Loop() {
		s.do(req)
	}
}

func BenchmarkFetch(b *testing.B) {
	s := serve()
	s.do(Commit{commitOf("g", 10)})
	topics := []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}
	req := Request(Fetch{OffsetFetchRequestGroup: &kmsg.OffsetFetchRequestGroup{Group: "g", Topics: topics}, Memory: &FetchMemory{}})
	b.ReportAllocs()
	for b.Loop() {
		s.do(req)
	}
}

// BenchmarkHeartbeat is of one member of ten thousand groups.
func BenchmarkHeartbeat(b *testing.B) {
	s := serve()
	reqs := make([]Request, 10_000)
	for i := range reqs {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Group, r.ProtocolType, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = fmt.Sprint("group-", i), "consumer", 10_000, 10_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		s.do(Join{Client{"c", ""}, r, false, false})
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.Generation = r.Group, 1
		reqs[i] = Heartbeat{h}
	}
	for i := range reqs {
		s.m.Fire(s.now, &s.out)
		h := reqs[i].(Heartbeat)
		h.MemberID = s.out.Replies[0].Resp.(*kmsg.JoinGroupResponse).MemberID
		s.out.Reset()
		r := kmsg.NewPtrSyncGroupRequest()
		r.Group, r.MemberID, r.Generation = h.Group, h.MemberID, 1
		s.do(Sync{r})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.now = s.now.Add(100 * time.Microsecond)
		if resp := s.do(reqs[i%len(reqs)]).(*kmsg.HeartbeatResponse); resp.ErrorCode != 0 {
			b.Fatal(resp.ErrorCode)
		}
		for at, _ := s.m.NextTimer(); !at.After(s.now); at, _ = s.m.NextTimer() {
			s.m.Fire(s.now, &s.out)
			s.out.Reset()
		}
	}
}

// TestFetchAllAllocates: all offsets of a group are gathered in a few pieces of memory.
func TestFetchAllAllocates(t *testing.T) {
	h := newHarness(t.Fatalf)
	h.open()
	var out output
	h.m.Loaded(epoch, "g", &out)
	h.m.Handle(epoch, machine.Input[Request]{Token: 1, Req: Commit{commitOf("g", 500)}}, &out)
	for at := range out.Records {
		h.m.Apply(storage.Offset(at), &out.Records[at])
	}
	g := h.m.hard.Group("g")
	r := Fetch{OffsetFetchRequestGroup: &kmsg.OffsetFetchRequestGroup{Group: "g"}}
	if n := testing.AllocsPerRun(10, func() { new(FetchMemory).all(g, r) }); n > 10 {
		t.Errorf("%.0f allocations for 500 offsets", n)
	}
	var again FetchMemory
	if n := testing.AllocsPerRun(10, func() { again.all(g, r); again.Reset(500) }); n > 8 {
		t.Errorf("%.0f allocations for 500 offsets in memory that was used before", n)
	}
}
