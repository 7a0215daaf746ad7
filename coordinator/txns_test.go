package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/marker"
	"github.com/kcoord/kcoord/storage/memlog"
)

// cluster is the brokers behind: they give out producer ids and take markers.
type cluster struct {
	mu      sync.Mutex
	next    txn.ProducerID
	away    bool
	given   map[txn.ProducerID]bool
	markers []string
}

func (c *cluster) Fresh(_ context.Context, n int) ([]txn.ProducerID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("away")
	}
	var ids []txn.ProducerID
	for range n {
		c.next++
		ids = append(ids, c.next)
	}
	return ids, nil
}

func (c *cluster) Route(_ context.Context, topics []string) (map[string]marker.Route, error) {
	out := map[string]marker.Route{}
	for _, t := range topics {
		out[t] = marker.Route{Leaders: map[int32]int32{0: 1, 1: 1, 2: 1, 3: 1}}
	}
	return out, nil
}

func (c *cluster) Write(_ context.Context, _ int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("away")
	}
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range req.Markers {
		rm := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, t := range m.Topics {
			rt := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				c.markers = append(c.markers, fmt.Sprintf("%s-%d %d/%d commit=%t", t.Topic, p, m.ProducerID, m.ProducerEpoch, m.Committed))
				rt.Partitions = append(rt.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p})
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	return resp, nil
}

func openTxns(t *testing.T, b *memlog.Backend, c *cluster) *Node {
	t.Helper()
	n, err := Open(Options{
		Backend: b, Shards: 4, TxnShards: 4, Log: zerolog.Nop(), ProducerIDs: c, Brokers: c,
		Group: group.Config{
			MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: time.Hour, MaxSize: 100, MetadataMaxChars: 4096,
			Retention: 1000 * time.Hour, RetentionCheckInterval: time.Hour, LegacyTxnCommit: group.AllowLegacy,
		},
		Txn: txn.Config{MaxTimeout: time.Hour, AbortInterval: time.Second, Expiration: 1000 * time.Hour, RemoveInterval: time.Hour, TransactionVersion: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// txnAsk asks and waits; lost: it is not known what came of it.
func txnAsk[T any](n *Node, req txn.Request) (resp T, lost bool) {
	type answer struct {
		r   txn.Response
		err error
	}
	ch := make(chan answer, 1)
	n.Txn(req, func(r txn.Response, err error) { ch <- answer{r, err} })
	a := <-ch
	if a.err != nil {
		return resp, true
	}
	return a.r.(T), false
}

func initialise(n *Node, id string) (*kmsg.InitProducerIDResponse, bool) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 30_000, -1, -1
	return txnAsk[*kmsg.InitProducerIDResponse](n, txn.Init{InitProducerIDRequest: req})
}

func commitIn(n *Node, id string, p *kmsg.InitProducerIDResponse, groupID string, offset int64) (code int16, lost bool) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = id, groupID, p.ProducerID, p.ProducerEpoch
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: offset, LeaderEpoch: -1}}}}
	type answer struct {
		r   group.TxnCommitted
		err error
	}
	ch := make(chan answer, 1)
	n.CommitInTxn(TxnCommit{TxnCommit: group.TxnCommit{TxnOffsetCommitRequest: req, Fences: true}, Implicit: true}, func(r group.TxnCommitted, err error) { ch <- answer{r, err} })
	a := <-ch
	if a.err != nil {
		return 0, true
	}
	return a.r.Topics[0].Partitions[0].ErrorCode, false
}

func endOf(n *Node, id string, p *kmsg.InitProducerIDResponse, commit bool) (*kmsg.EndTxnResponse, bool) {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, p.ProducerID, p.ProducerEpoch, commit
	return txnAsk[*kmsg.EndTxnResponse](n, txn.End{EndTxnRequest: req, TransactionVersion: 2})
}

// stableOffset waits until nothing is pending.
func stableOffset(t *testing.T, n *Node, groupID string) int64 {
	t.Helper()
	for range 600 {
		req := kmsg.NewOffsetFetchRequestGroup()
		req.Group, req.MemberEpoch = groupID, -1
		req.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0}}}
		resp := do[*kmsg.OffsetFetchResponseGroup](t, n, group.Fetch{OffsetFetchRequestGroup: &req, RequireStable: true})
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode == 0 {
			return p.Offset
		}
		time.Sleep(100 * time.Millisecond) // of the bubble's clock
	}
	t.Fatalf("offsets of %s stay pending", groupID)
	return 0
}

// app is a transactional producer and what it knows.
type app struct {
	id, group string
	p         *kmsg.InitProducerIDResponse // nil: it must begin anew
	open      int64                        // the offset that its transaction has committed; 0: none
	is        []int64                      // what may be committed: one, unless an answer was lost
	seq       int64
}

// TestTransactionsOverCrashes plays random transactions of several producers, with crashes in
// the middle, failing disks, timeouts and brokers that are away. No offset of a committed
// transaction is lost, none of an aborted one is seen, no transaction stays open, and no
// producer id is given out twice.
func TestTransactionsOverCrashes(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playTransactions(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func playTransactions(t *testing.T, r *rand.Rand) {
	c := &cluster{given: map[txn.ProducerID]bool{}}
	b := memlog.New(Index)
	n := openTxns(t, b, c)
	apps := []*app{{id: "x", group: "g", is: []int64{-1}}, {id: "y", group: "h", is: []int64{-1}}, {id: "z", group: "i", is: []int64{-1}}}
	crash := func() {
		old, was := n, b
		b = was.Crash()
		old.Close()
		was.Close()
		n = openTxns(t, b, c)
	}
	allLost := func() {
		for _, a := range apps {
			a.lost()
		}
	}
	for range 60 {
		a := apps[r.IntN(len(apps))]
		switch k := r.IntN(20); {
		case k < 14:
			a.step(t, n, c, r)
		case k == 14:
			crash()
			allLost()
		case k == 15: // in the middle of a step
			b.Hold()
			done := make(chan struct{})
			at := n
			go func() { a.step(t, at, c, r); close(done) }()
			synctest.Wait()
			crash()
			<-done
			allLost()
		case k == 16:
			b.FailNext(errors.New("injected"), r.IntN(2) == 0)
		case k == 17:
			time.Sleep(time.Duration(r.IntN(40)) * time.Second)
		default:
			c.mu.Lock()
			c.away = k == 18
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.away = false
	c.mu.Unlock()
	time.Sleep(2 * time.Minute) // what is open times out
	for _, a := range apps {
		a.p = nil
		for a.p == nil {
			a.begin(t, n, c)
		}
		if got := stableOffset(t, n, a.group); !slices.Contains(a.is, got) {
			t.Errorf("%s: offset %d, and it may be %v", a.group, got, a.is)
		}
	}
	if s := n.TxnStats(); s.Waiting != 0 {
		t.Errorf("%d transactions wait for markers", s.Waiting)
	}
	n.Close()
	b.Close()
}

// lost: the app begins anew. What it had not asked to commit will be aborted.
func (a *app) lost() { a.p, a.open = nil, 0 }

func (a *app) step(t *testing.T, n *Node, c *cluster, r *rand.Rand) {
	switch {
	case a.p == nil:
		a.begin(t, n, c)
	case a.open == 0 || r.IntN(3) == 0:
		a.seq++
		code, lost := commitIn(n, a.id, a.p, a.group, a.seq)
		switch {
		case lost:
			a.lost()
		case code == 0:
			a.open = a.seq
		case code == 51 || code == 14 || code == 16: // to be tried again
		case code == 90 || code == 47: // fenced by its timeout
			a.lost()
		default:
			t.Errorf("%s: TxnOffsetCommit: %d", a.id, code)
		}
	default:
		a.end(t, n, r.IntN(3) > 0)
	}
}

func (a *app) end(t *testing.T, n *Node, commit bool) {
	offset := a.open
	if commit { // from here on it may be, whatever is heard
		a.is = append(a.is, offset)
	}
	resp, lost := endOf(n, a.id, a.p, commit)
	switch {
	case lost:
		a.lost()
	case resp.ErrorCode == 0:
		if a.open = 0; commit {
			a.is = []int64{offset}
		} else {
			a.is = slices.DeleteFunc(a.is, func(o int64) bool { return o == offset })
		}
		a.p = &kmsg.InitProducerIDResponse{ProducerID: resp.ProducerID, ProducerEpoch: resp.ProducerEpoch}
	case resp.ErrorCode == 90 || resp.ErrorCode == 47: // its timeout came first
		a.is = slices.DeleteFunc(a.is, func(o int64) bool { return o == offset })
		a.lost()
	case resp.ErrorCode == 51, resp.ErrorCode == 14: // nothing has come of it
		a.is = slices.DeleteFunc(a.is, func(o int64) bool { return o == offset })
	default:
		t.Errorf("%s: EndTxn: %d", a.id, resp.ErrorCode)
	}
}

func (a *app) begin(t *testing.T, n *Node, c *cluster) {
	for range 200 {
		resp, lost := initialise(n, a.id)
		switch {
		case lost:
			return
		case resp.ErrorCode == 0:
			a.p = resp
			c.mu.Lock()
			if id := txn.ProducerID(resp.ProducerID); resp.ProducerEpoch == 0 && c.given[id] {
				t.Errorf("producer id %d was given out twice", id)
			} else {
				c.given[id] = true
			}
			c.mu.Unlock()
			// Everything before is decided, but an answer may have been lost.
			if got := stableOffset(t, n, a.group); !slices.Contains(a.is, got) {
				t.Errorf("%s: offset %d, and it may be %v", a.group, got, a.is)
			} else {
				a.is = []int64{got}
			}
			return
		case resp.ErrorCode != 51 && resp.ErrorCode != 14:
			t.Errorf("%s: InitProducerId: %d", a.id, resp.ErrorCode)
			return
		}
		time.Sleep(100 * time.Millisecond) // of the bubble's clock
	}
	t.Errorf("%s: InitProducerId is told to wait for ever", a.id)
}

// A marker that reached the group first would leave offsets pending for ever.
func TestMarkersWaitForOffsetsOnTheirWay(t *testing.T) {
	var g gate[int64]
	var order []string
	g.after(1, func() { order = append(order, "free") })
	first, second := g.enter(1), g.enter(1)
	g.after(1, func() { order = append(order, "marker") })
	g.after(2, func() { order = append(order, "other producer") })
	late := g.enter(1) // which finds the transaction decided
	g.after(1, func() { order = append(order, "marker again") })
	g.leave(1, first)
	order = append(order, "one left")
	g.leave(1, second)
	later := g.enter(1)
	g.leave(1, late)
	g.leave(1, later)
	if want := []string{"free", "other producer", "one left", "marker", "marker again"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if len(g.between) != 0 {
		t.Error("something is remembered")
	}
}

// Offsets that come before the last transaction's marker has passed wait for that transaction, whose
// marker once waited for them: until the patience with both was over.
func TestOffsetsAndMarkersDontWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memlog.New(Index)
		n := openTxns(t, b, &cluster{})
		defer func() { n.Close(); b.Close() }()
		p, _ := initialise(n, "x")
		if code, _ := commitIn(n, "x", p, "g", 1); code != 0 {
			t.Fatal(code)
		}
		b.Hold()
		ended := make(chan int16)
		go func() {
			r, _ := endOf(n, "x", p, true)
			ended <- r.ErrorCode
		}()
		synctest.Wait() // it is decided, and its marker not sent yet
		next := *p
		next.ProducerEpoch++
		began, done := time.Now(), make(chan int16)
		go func() {
			code, _ := commitIn(n, "x", &next, "g", 2)
			done <- code
		}()
		synctest.Wait()
		b.Release(-1)
		if code := <-ended; code != 0 {
			t.Errorf("the end is answered %d", code)
		}
		if code, took := <-done, time.Since(began); code != 0 || took >= patience {
			t.Errorf("the next offsets are answered %d after %s", code, took)
		}
		endOf(n, "x", &next, true)
		if at := stableOffset(t, n, "g"); at != 2 {
			t.Errorf("the group is at %d", at)
		}
	})
}

// While the broker is away producers are told to try again; then they get an id each.
func TestProducerIDsWhileTheBrokerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{away: true}
		b := memlog.New(Index)
		n := openTxns(t, b, c)
		defer func() { n.Close(); b.Close() }()
		n.Txn(initOf("x"), func(_ txn.Response, err error) {
			if !errors.Is(err, ErrLoading) {
				t.Errorf("answered %v", err)
			}
		})
		synctest.Wait()
		c.mu.Lock()
		c.away = false
		c.mu.Unlock()
		seen := map[int64]bool{}
		for i := range 200 {
			resp, lost := initialise(n, fmt.Sprint("x", i))
			if lost || resp.ErrorCode != 0 || seen[resp.ProducerID] {
				t.Fatalf("%+v, lost: %t", resp, lost)
			}
			seen[resp.ProducerID] = true
		}
	})
}

func initOf(id string) txn.Init {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 30_000, -1, -1
	return txn.Init{InitProducerIDRequest: req}
}

// Close answers everybody.
func TestCloseWhileTransactionsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		b := memlog.New(Index)
		n := openTxns(t, b, c)
		p, _ := initialise(n, "x")
		b.Hold()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, lost := commitIn(n, "x", p, "g", 1); !lost {
					t.Error("an answer, though nothing was durable")
				}
			})
		}
		synctest.Wait()
		n.Close()
		all.Wait()
		b.Close()
	})
}

// The next transaction begins as soon as the one before is complete, and not when its client
// would have asked again; and a client is not kept when that takes long.
func TestTheNextTransactionWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		b := memlog.New(Index)
		n := openTxns(t, b, c)
		defer func() { n.Close(); b.Close() }()
		p, _ := initialise(n, "x")
		add := func(epoch int16) (int16, time.Duration) {
			began := time.Now()
			r, _ := txnAsk[txn.Result](n, txn.AddImplicit{
				TransactionalID: "x", Producer: txn.Producer{ID: txn.ProducerID(p.ProducerID), Epoch: txn.Epoch(epoch)},
				Topics: []txn.Topic{{Name: "t", Partitions: []int32{0}}},
			})
			return r.Code, time.Since(began)
		}
		if code, _ := add(0); code != 0 {
			t.Fatal(code)
		}
		c.mu.Lock()
		c.away = true
		c.mu.Unlock()
		if r, _ := endOf(n, "x", p, true); r.ErrorCode != 0 {
			t.Fatal(r.ErrorCode)
		}
		if code, took := add(1); code != 51 || took != patience {
			t.Errorf("while the broker is away: %d after %s", code, took)
		}
		c.mu.Lock()
		c.away = false
		c.mu.Unlock()
		time.Sleep(2 * time.Second) // until the sender has tried again
		if code, took := add(1); code != 0 || took > time.Millisecond {
			t.Errorf("when it is back: %d after %s", code, took)
		}
		n.waiting.mu.Lock()
		defer n.waiting.mu.Unlock()
		if len(n.waiting.of) != 0 {
			t.Error("somebody is still waiting")
		}
	})
}
