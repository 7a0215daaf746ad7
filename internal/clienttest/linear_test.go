package clienttest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	registers = 3 // partitions of a group that are committed and fetched together
	rivals    = 4 // connections to a group
)

// TestCommitsAreLinearizable commits and fetches offsets over raw connections while
// kcoord is killed again and again. There must be an order of all requests, each
// between its sending and its answer, that explains every answer.
func TestCommitsAreLinearizable(t *testing.T) {
	t.Parallel()
	kills, between := 20, int64(400)
	if testing.Short() {
		kills, between = 2, 100
	}
	k := start(t)
	k.topic(topic, registers, 1)
	h := &history{began: time.Now()}
	h.life.Store(&life{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	groups := []kmsg.OffsetCommitRequest{simple("simple-1"), simple("simple-2"), joinedAs(t, k, "joined")}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range len(groups) * rivals {
		r := &rival{
			t: t, k: k, h: h, id: i, group: i % len(groups), who: groups[i%len(groups)],
			rand: rand.New(rand.NewPCG(seed, uint64(i))), stop: stop,
		}
		all.Go(r.run)
	}
	for range kills {
		at := h.answers.Load()
		until(t, "commits are answered", func() error {
			if h.answers.Load() < at+between {
				return errNotYet
			}
			return nil
		})
		k.kill()
		h.died()
		k.restart()
	}
	close(stop)
	all.Wait()
	h.died()
	if t.Failed() {
		return
	}
	h.check(t)
}

// history is what all rivals did, in porcupine's words.
type history struct {
	began   time.Time
	answers atomic.Int64
	life    atomic.Pointer[life]

	mu         sync.Mutex
	operations []porcupine.Operation
	open       []unknown
}

// life is from a start of kcoord to its end. When a request is cut off, it took effect
// before that end or never does: a dead process does nothing later. (That is more
// than to say "any time later, or never", and makes the search shorter.)
type life struct{ end int64 }

// unknown is a commit that was not answered.
type unknown struct {
	op   porcupine.Operation
	life *life
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) died() {
	l := h.life.Swap(&life{})
	l.end = h.now() // read when all rivals have ended
}

func (h *history) add(op porcupine.Operation, cut *life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cut != nil {
		h.open = append(h.open, unknown{op, cut})
		return
	}
	h.answers.Add(1)
	h.operations = append(h.operations, op)
}

// value is all of a committed offset that a fetch tells. The zero value is: none.
type value struct {
	offset   int64
	epoch    int32
	metadata string
}

type values [registers]value

// input is a commit of those values that are set, or a fetch.
type input struct {
	group  int
	commit bool
	to     values
}

// output is what a fetch told, or how a commit ended.
type output struct {
	unknown bool
	told    values
}

// offsets are registers, as many as partitions, which are written and read together.
var offsets = porcupine.NondeterministicModel{
	Init: func() []any { return []any{values{}} },
	Partition: func(h []porcupine.Operation) [][]porcupine.Operation {
		var groups [][]porcupine.Operation
		for _, op := range h {
			g := op.Input.(input).group
			for len(groups) <= g {
				groups = append(groups, nil)
			}
			groups[g] = append(groups[g], op)
		}
		return groups
	},
	Step: func(state, in, out any) []any {
		is, i, o := state.(values), in.(input), out.(output)
		if !i.commit {
			if o.told == is {
				return []any{is}
			}
			return nil
		}
		becomes := is
		for p, v := range i.to {
			if v != (value{}) {
				becomes[p] = v
			}
		}
		if o.unknown {
			return []any{becomes, is}
		}
		return []any{becomes}
	},
	DescribeOperation: func(in, out any) string {
		if i := in.(input); i.commit {
			return fmt.Sprintf("commit %v (unknown: %t)", i.to, out.(output).unknown)
		}
		return fmt.Sprintf("fetch: %v", out.(output).told)
	},
}

func (h *history) check(t *testing.T) {
	for _, u := range h.open {
		u.op.Return = u.life.end
		h.operations = append(h.operations, u.op)
	}
	if len(h.open) == 0 {
		t.Error("no commit was cut off: the test shows less than it is to")
	}
	model, began := offsets.ToModel(), time.Now()
	result := porcupine.CheckOperationsTimeout(model, h.operations, patience)
	t.Logf("%d operations, %d of them cut off: %s after %s", len(h.operations), len(h.open), result, time.Since(began))
	if result == porcupine.Ok {
		return
	}
	t.Errorf("no order of the requests explains their answers (%s)", result)
	_, info := porcupine.CheckOperationsVerbose(model, h.operations, patience)
	if path := t.ArtifactDir() + "/history.html"; porcupine.VisualizePath(model, info, path) == nil {
		t.Logf("the history, kept by go test -artifacts: %s", path)
	}
}

// rival is one connection to a group.
type rival struct {
	t     *testing.T
	k     *child
	h     *history
	id    int
	group int
	who   kmsg.OffsetCommitRequest
	rand  *rand.Rand
	stop  chan struct{}
	wire  *wire
	count int64
}

func (r *rival) run() {
	defer r.hangUp()
	for r.connect() && !r.stopped() && !r.t.Failed() {
		// Commits in a row that nobody looks between make the search long.
		r.commit()
		if r.rand.IntN(2) == 0 && r.connect() {
			r.commit()
		}
		if r.connect() {
			r.fetch()
		}
	}
}

func (r *rival) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

func (r *rival) hangUp() {
	if r.wire != nil {
		r.wire.conn.Close()
	}
}

func (r *rival) connect() bool {
	for r.wire == nil {
		r.wire, _ = dial(r.k.address, fmt.Sprint("rival-", r.id)) // it may be dead
		if r.wire == nil && (r.stopped() || !pause(r.t.Context())) {
			return false
		}
	}
	return true
}

// ask returns nil when there is no answer.
func (r *rival) ask(req kmsg.Request) kmsg.Response {
	resp, err := r.wire.ask(req)
	if err != nil {
		r.hangUp()
		r.wire = nil
		return nil
	}
	return resp
}

// commit sets some of the registers to values that nobody else uses.
func (r *rival) commit() {
	r.count++
	in := input{group: r.group, commit: true}
	req := r.who
	rt := kmsg.OffsetCommitRequestTopic{Topic: topic}
	for _, chosen := range r.rand.Perm(registers)[:1+r.rand.IntN(registers)] {
		v := value{r.count*1000 + int64(r.id), int32(r.count), fmt.Sprintf("%d of %d", r.count, r.id)}
		in.to[chosen] = v
		rt.Partitions = append(rt.Partitions, kmsg.OffsetCommitRequestTopicPartition{
			Partition: int32(chosen), Offset: v.offset, LeaderEpoch: v.epoch, Metadata: &in.to[chosen].metadata,
		})
	}
	req.Topics = append(req.Topics, rt)
	op := porcupine.Operation{ClientId: r.id, Input: in, Call: r.h.now(), Output: output{}}
	l := r.h.life.Load()
	resp := r.ask(&req)
	op.Return = r.h.now()
	if resp == nil || r.sentAway(resp.(*kmsg.OffsetCommitResponse)) {
		op.Output = output{unknown: true}
		r.h.add(op, l)
		return
	}
	r.h.add(op, nil)
}

// sentAway says whether a commit is to come again. Then it may have happened, too.
func (r *rival) sentAway(resp *kmsg.OffsetCommitResponse) bool {
	away := false
	for _, p := range resp.Topics[0].Partitions {
		err := kerr.ErrorForCode(p.ErrorCode)
		if err != nil && !kerr.IsRetriable(err) {
			r.t.Errorf("a commit was refused: %v", err)
		}
		away = away || err != nil
	}
	return away
}

// fetch tells nothing of the state when it is not answered, or told to come again.
func (r *rival) fetch() {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 5, r.who.Group
	rt := kmsg.OffsetFetchRequestTopic{Topic: topic}
	for p := range int32(registers) {
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = append(req.Topics, rt)
	op := porcupine.Operation{ClientId: r.id, Input: input{group: r.group}, Call: r.h.now()}
	answer := r.ask(req)
	if answer == nil {
		return
	}
	op.Return = r.h.now()
	resp := answer.(*kmsg.OffsetFetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		if !kerr.IsRetriable(err) {
			r.t.Errorf("a fetch was refused: %v", err)
		}
		return
	}
	var out output
	for _, p := range resp.Topics[0].Partitions {
		if p.ErrorCode != 0 {
			r.t.Errorf("a partition could not be fetched: %v", kerr.ErrorForCode(p.ErrorCode))
		}
		if p.Offset >= 0 {
			out.told[p.Partition] = value{p.Offset, p.LeaderEpoch, *p.Metadata}
		}
	}
	op.Output = out
	r.h.add(op, nil)
}

// simple commits as one who is no member.
func simple(group string) kmsg.OffsetCommitRequest {
	req := kmsg.NewOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	return req
}

// joinedAs commits as the only member of a group, who stays in it while kcoord dies.
func joinedAs(t *testing.T, k *child, group string) kmsg.OffsetCommitRequest {
	t.Helper()
	w, err := dial(k.address, "joined")
	must(t, err)
	defer w.conn.Close()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType = 3, group, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 600_000, 600_000
	join.Protocols = append(join.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range"})
	resp, err := w.ask(join)
	must(t, err)
	joined := resp.(*kmsg.JoinGroupResponse)
	must(t, kerr.ErrorForCode(joined.ErrorCode))
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, group, joined.Generation, joined.MemberID
	sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: joined.MemberID})
	resp, err = w.ask(sync)
	must(t, err)
	must(t, kerr.ErrorForCode(resp.(*kmsg.SyncGroupResponse).ErrorCode))
	req := simple(group)
	req.Generation, req.MemberID = joined.Generation, joined.MemberID
	return req
}
