package marker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/coordinator/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster and a coordinator, of which everything can be changed.
type world struct {
	t *testing.T
	s *Sender

	mu      sync.Mutex
	routes  map[string]Route                              // what is left out, is not told of
	down    map[int32]bool                                // brokers that cannot be reached
	code    func(node int32, topic string, p int32) int16 // nil: 0
	slow    map[int32]time.Duration
	deaf    int // reports that are not heard
	busy    map[int32]int
	written []string
	reports []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, routes: map[string]Route{}, down: map[int32]bool{}, slow: map[int32]time.Duration{}, busy: map[int32]int{}}
	w.s = New(Options{Brokers: w, Group: w.group, Groups: 50, Report: w.report, CoordinatorEpoch: 7, Log: zerolog.Nop()})
	return w
}

func (w *world) Route(_ context.Context, topics []string) (map[string]Route, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down[0] { // the broker behind
		return nil, errors.New("down")
	}
	out := map[string]Route{}
	for _, t := range topics {
		if r, has := w.routes[t]; has {
			out[t] = r
		}
	}
	return out, nil
}

func (w *world) Write(ctx context.Context, node int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	w.mu.Lock()
	if w.busy[node]++; w.busy[node] > 1 {
		w.t.Errorf("two requests in flight to broker %d", node)
	}
	wait, down := w.slow[node], w.down[node]
	w.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[node]--
	if down {
		return nil, errors.New("down")
	}
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range req.Markers {
		if m.CoordinatorEpoch != 7 {
			w.t.Errorf("coordinator epoch %d", m.CoordinatorEpoch)
		}
		rm := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
		for _, t := range m.Topics {
			rt := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				code := int16(0)
				if w.code != nil {
					code = w.code(node, t.Topic, p)
				}
				if code == 0 {
					w.written = append(w.written, fmt.Sprintf("%d/%d %s-%d at %d commit=%t", m.ProducerID, m.ProducerEpoch, t.Topic, p, node, m.Committed))
				}
				rt.Partitions = append(rt.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p, ErrorCode: code})
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	return resp, nil
}

func (w *world) group(partition int32, m Marker, reply func(error)) {
	w.mu.Lock()
	code := int16(0)
	if w.code != nil {
		code = w.code(-1, txn.OffsetsTopic, partition)
	}
	if code == 0 {
		w.written = append(w.written, fmt.Sprintf("%v group %d commit=%t", m.Producer, partition, m.Commit))
	}
	w.mu.Unlock()
	if code != 0 {
		reply(errors.New("not now"))
		return
	}
	reply(nil)
}

func (w *world) report(req txn.Request, reply func(error)) {
	w.mu.Lock()
	if w.deaf > 0 {
		w.deaf--
		w.mu.Unlock()
		reply(errors.New("lost"))
		return
	}
	switch r := req.(type) {
	case txn.MarkersDone:
		what := "all"
		if r.Topics != nil {
			what = fmt.Sprint(r.Topics)
		}
		w.reports = append(w.reports, fmt.Sprintf("%s %v done %s", r.TransactionalID, r.Attempt.Producer, what))
	case txn.PartitionsGone:
		w.reports = append(w.reports, fmt.Sprintf("%s %v gone %v", r.TransactionalID, r.Attempt.Producer, r.Topics))
	}
	w.mu.Unlock()
	reply(nil)
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// told waits for some time and returns what was written and reported, and forgets it.
func (w *world) told(after time.Duration) (written, reports []string) {
	time.Sleep(after) // of the bubble's clock
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	written, reports = w.written, w.reports
	w.written, w.reports = nil, nil
	slices.Sort(written)
	return written, reports
}

func (w *world) expect(after time.Duration, written, reports []string) {
	w.t.Helper()
	gotW, gotR := w.told(after)
	if !slices.Equal(gotW, written) || !slices.Equal(gotR, reports) {
		w.t.Errorf("written:\n%s\nwant:\n%s\nreported:\n%s\nwant:\n%s", strings.Join(gotW, "\n"), strings.Join(written, "\n"),
			strings.Join(gotR, "\n"), strings.Join(reports, "\n"))
	}
}

var decided = time.UnixMilli(1_000_000)

func send(id string, producer int64, topics ...txn.Topic) txn.SendMarkers {
	return txn.SendMarkers{
		TransactionalID: id, Commit: true, Topics: topics,
		Attempt: txn.Attempt{Producer: txn.Producer{ID: txn.ProducerID(producer), Epoch: 3}, Decided: decided},
	}
}

func at(topic string, partitions ...int32) txn.Topic {
	return txn.Topic{Name: topic, Partitions: partitions}
}

func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.s.Close()
		f(w)
	})
}

func TestMarkersGoToLeadersAndGroups(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1, 1: 2}}
		w.routes["u"] = Route{Leaders: map[int32]int32{0: 1}}
		w.s.Send(send("x", 10, at(txn.OffsetsTopic, 4, 9), at("t", 0, 1), at("u", 0)))
		w.expect(time.Millisecond, []string{"10/3 group 4 commit=true", "10/3 group 9 commit=true", "10/3 t-0 at 1 commit=true", "10/3 t-1 at 2 commit=true", "10/3 u-0 at 1 commit=true"},
			[]string{"x 10/3 done all"})
		if n, _ := w.s.Waiting(); n != 0 {
			t.Errorf("%d transactions wait", n)
		}
	})
}

// What only concerns groups is done when Send returns: no goroutine is waited for.
func TestGroupsAloneAreDoneAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set(func() { w.down[0] = true })
		w.s.Send(send("x", 10, at(txn.OffsetsTopic, 4)))
		w.set(func() {
			if !slices.Equal(w.reports, []string{"x 10/3 done all"}) {
				t.Error(w.reports)
			}
		})
	})
}

func TestOneRequestABrokerCarriesWhatCameMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
		w.slow[1] = time.Second
		for i := range int64(20) {
			w.s.Send(send(fmt.Sprintf("x%02d", i), i, at("t", 0)))
		}
		written, reports := w.told(2500 * time.Millisecond)
		if len(written) != 20 || len(reports) != 20 {
			t.Errorf("%d written, %d reported after two requests", len(written), len(reports))
		}
	})
}

func TestALeaderMoves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
		w.code = func(node int32, _ string, _ int32) int16 {
			if node == 1 {
				return 6 // NOT_LEADER_OR_FOLLOWER
			}
			return 0
		}
		w.s.Send(send("x", 10, at("t", 0)))
		w.expect(3*time.Second, nil, nil)
		w.set(func() { w.routes["t"] = Route{Leaders: map[int32]int32{0: -1}} })
		w.expect(time.Minute, nil, nil)
		w.set(func() { w.routes["t"] = Route{Leaders: map[int32]int32{0: 2}} })
		w.expect(2*time.Second, []string{"10/3 t-0 at 2 commit=true"}, []string{"x 10/3 done all"})
	})
}

// A broker that is away for minutes holds up its own partitions alone, and what the
// others have is reported meanwhile.
func TestABrokerIsDownForMinutes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1, 1: 2}}
		w.down[2] = true
		w.s.Send(send("x", 10, at("t", 0, 1)))
		w.expect(5*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done [{t [0]}]"})
		w.expect(10*time.Minute, nil, nil)
		w.set(func() { w.down[2] = false })
		w.expect(2*time.Second, []string{"10/3 t-1 at 2 commit=true"}, []string{"x 10/3 done all"})
	})
}

// A broker that has just started may show no topics yet, and one that says nothing of a
// topic says nothing about it: neither makes a marker superfluous.
func TestOnlyWhatIsSaidToBeGoneIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.s.Send(send("x", 10, at("t", 0)))
		w.expect(time.Hour, nil, nil)
		w.set(func() { w.routes["t"] = Route{Absent: true} })
		w.told(500 * time.Millisecond)
		w.set(func() { w.routes["t"] = Route{Leaders: map[int32]int32{0: -1}} })
		w.expect(time.Hour, nil, nil)
		w.set(func() { w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}} })
		w.expect(2*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done all"})
	})
}

func TestDeletedTopics(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Absent: true}
		w.routes["u"] = Route{Leaders: map[int32]int32{0: 1}} // made again, with fewer partitions
		w.s.Send(send("x", 10, at("t", 0), at("u", 0, 5)))
		w.expect(5*time.Second, []string{"10/3 u-0 at 1 commit=true"}, []string{"x 10/3 done [{u [0]}]", "x 10/3 gone [{t [0]} {u [5]}]", "x 10/3 done all"})
	})
}

// A partition of __consumer_offsets that there is not here never was.
func TestMorePartitionsThanHere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.s.Send(send("x", 10, at(txn.OffsetsTopic, 3, 77)))
		w.expect(time.Second, []string{"10/3 group 3 commit=true"}, []string{"x 10/3 gone [{__consumer_offsets [77]}]", "x 10/3 done all"})
	})
}

// What a broker refuses is tried again rarely, and never given up: an operator can help.
func TestRefusedMarkers(t *testing.T) {
	for _, code := range []int16{47, 52, 31, 41} {
		inWorld(t, func(w *world) {
			tries := 0
			w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
			w.code = func(int32, string, int32) int16 { tries++; return code }
			w.s.Send(send("x", 10, at("t", 0)))
			if _, reports := w.told(5 * time.Minute); len(reports) > 0 || tries < 10 || tries > 40 {
				t.Errorf("code %d: %d tries in five minutes, %v", code, tries, reports)
			}
			w.set(func() { w.code = nil })
			w.expect(11*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done all"})
		})
	}
}

func TestWhatCannotHoldMarkersNeedsNone(t *testing.T) {
	for _, code := range []int16{43, 35} {
		inWorld(t, func(w *world) {
			w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
			w.code = func(int32, string, int32) int16 { return code }
			w.s.Send(send("x", 10, at("t", 0)))
			w.expect(time.Second, nil, []string{"x 10/3 done all"})
		})
	}
}

func TestAGroupThatDoesNotTakeIt(t *testing.T) {
	inWorld(t, func(w *world) {
		fails := 3
		w.code = func(int32, string, int32) int16 {
			if fails--; fails >= 0 {
				return 16
			}
			return 0
		}
		w.s.Send(send("x", 10, at(txn.OffsetsTopic, 4)))
		w.expect(5*time.Second, []string{"10/3 group 4 commit=true"}, []string{"x 10/3 done all"})
	})
}

func TestWhatWasNotHeardIsToldAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
		w.deaf = 3
		w.s.Send(send("x", 10, at("t", 0)))
		w.expect(10*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done all"})
	})
}

// The shard emits what is open again; the sender may be at it still.
func TestTheSameAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}}
		w.slow[1] = time.Second
		w.s.Send(send("x", 10, at("t", 0)))
		w.told(100 * time.Millisecond)
		w.s.Send(send("x", 10, at("t", 0)))
		w.expect(5*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done all"})
		next := send("x", 10, at("t", 0))
		next.Attempt.Decided = decided.Add(time.Millisecond)
		w.s.Send(next)
		w.expect(5*time.Second, []string{"10/3 t-0 at 1 commit=true"}, []string{"x 10/3 done all"})
	})
}

// What was deleted may be made again: the answer of then says nothing about it.
func TestATopicIsMadeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.routes["t"] = Route{Absent: true}
		w.s.Send(send("x", 10, at("t", 0)))
		w.expect(2*time.Second, nil, []string{"x 10/3 gone [{t [0]}]", "x 10/3 done all"})
		w.set(func() { w.routes["t"] = Route{Leaders: map[int32]int32{0: 1}} })
		w.s.Send(send("y", 11, at("t", 0)))
		w.expect(time.Second, []string{"11/3 t-0 at 1 commit=true"}, []string{"y 11/3 done all"})
	})
}

func TestNothingToMark(t *testing.T) {
	inWorld(t, func(w *world) {
		w.s.Send(send("x", 10))
		w.expect(time.Second, nil, []string{"x 10/3 done all"})
	})
}
