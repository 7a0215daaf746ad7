package txn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/storage"
)

// epoch is when the scripts begin.
var epoch = time.UnixMilli(1_700_000_000_000).UTC()

// kafka is how Kafka 4.4.0 comes, with the sweep of conform's settings.
var kafka = Config{
	MaxTimeout: 15 * time.Minute, AbortInterval: 200 * time.Millisecond,
	Expiration: 7 * 24 * time.Hour, RemoveInterval: time.Hour, TransactionVersion: 2,
}

// harness is the runner in small: it loads what a machine needs, applies what it
// decides, and keeps the records in a slice, of which all are durable at once.
type harness struct {
	cfg Config
	m   *Machine
	now time.Time
	log []state.Record
	out output

	token   machine.Token
	fresh   ProducerID             // the last that was given out
	told    map[string]Producer    // who a client believes to be, by transactional id
	markers map[string]SendMarkers // latest effects
	text    strings.Builder
	loads   int
	bad     func(format string, args ...any)
}

func newHarness(bad func(string, ...any)) *harness {
	return &harness{cfg: kafka, now: epoch, fresh: 999, told: map[string]Producer{}, markers: map[string]SendMarkers{}, bad: bad}
}

// open starts a machine on the log, the first or one after a crash.
func (h *harness) open() {
	h.m = New(h.cfg)
	clear(h.markers)
	var load []string
	for _, id := range h.stored() {
		if h.m.Known(id, []state.Record{h.log[h.latest(id)]}, false) {
			load = append(load, id)
		}
	}
	for _, id := range load {
		h.need(id)
	}
}

// stored are the ids with a record that is no tombstone.
func (h *harness) stored() []string {
	var ids []string
	for _, r := range h.log {
		if !slices.Contains(ids, r.ID) && h.latest(r.ID) >= 0 {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (h *harness) latest(id string) int {
	for i := len(h.log) - 1; i >= 0; i-- {
		if h.log[i].ID == id {
			if h.log[i].Tombstone {
				return -1
			}
			return i
		}
	}
	return -1
}

// need has an id in memory.
func (h *harness) need(id string) {
	if h.m.Has(id) {
		return
	}
	h.loads++
	if i := h.latest(id); i >= 0 {
		h.m.Apply(storage.Offset(i), &h.log[i])
	}
	h.step(func() { h.m.Loaded(h.now, id, &h.out) })
}

// do sends a request, and again with a fresh producer id if it needs one.
func (h *harness) do(req Request) Response {
	resp := h.once(req)
	if _, needs := resp.(NeedProducerID); !needs {
		return resp
	}
	h.printf("a producer id is needed\n")
	h.fresh++
	fresh := h.fresh
	switch r := req.(type) {
	case Init:
		r.Fresh = &fresh
		req = r
	case End:
		r.Fresh = &fresh
		req = r
	case Abort:
		r.Fresh = &fresh
		req = r
	}
	return h.once(req)
}

func (h *harness) once(req Request) (resp Response) {
	if id, one := h.m.Touches(req); one {
		h.need(id)
	}
	h.token++
	h.step(func() { h.m.Handle(h.now, machine.Input[Request]{Token: h.token, Req: req}, &h.out) }, func() {
		if len(h.out.Replies) != 1 || h.out.Replies[0].Token != h.token {
			h.bad("%T is answered by %v", req, h.out.Replies)
		}
		resp = h.out.Replies[0].Resp
		if _, needs := resp.(NeedProducerID); needs && len(h.out.Records)+len(h.out.Effects) > 0 {
			h.bad("%T needs a producer id and does something all the same", req)
		}
	})
	return resp
}

// step runs a step of the machine, which must leave the hard state alone, then
// applies its records and prints them and its effects.
func (h *harness) step(run func(), look ...func()) {
	before := dump(h.m)
	run()
	if after := dump(h.m); after != before {
		h.bad("a step changed the hard state:\n%s\nwas:\n%s", after, before)
	}
	for _, f := range look {
		f()
	}
	for _, r := range h.out.Records {
		h.printf("  record %s: %s\n", r.ID, record(r))
		h.apply(r)
	}
	effects := slices.Clone(h.out.Effects)
	h.out.Reset()
	for _, e := range effects {
		h.effect(e)
	}
	h.m.Evict(storage.Offset(len(h.log)))
}

func (h *harness) effect(e Effect) {
	switch e := e.(type) {
	case SendMarkers:
		h.printf("  effect %s: markers %s v%d of %v at %v%s\n", e.TransactionalID, map[bool]string{true: "commit", false: "abort"}[e.Commit],
			e.TransactionVersion, e.Attempt.Producer, since(e.Attempt.Decided), topics(e.Topics))
		h.markers[e.TransactionalID] = e
	case WantsProducerID:
		h.printf("  effect %s: a producer id is wanted to abort %v\n", e.Abort.TransactionalID, *e.Abort.Only)
		h.fresh++
		fresh := h.fresh
		e.Abort.Fresh = &fresh
		h.printf("  it gets %d: %s\n", fresh, answer(h.once(e.Abort)))
	}
}

func (h *harness) apply(r state.Record) {
	h.log = append(h.log, r)
	h.m.Apply(storage.Offset(len(h.log)-1), &r)
}

func dump(m *Machine) string {
	var b strings.Builder
	m.Dump(&b)
	return b.String()
}

// advance lets time pass and fires what is due.
func (h *harness) advance(d time.Duration) {
	end := h.now.Add(d)
	for n := 0; ; n++ {
		at, some := h.m.NextTimer()
		if !some || at.After(end) {
			h.now = end
			return
		}
		if n > 10_000 {
			h.bad("the timers do not end")
			return
		}
		if at.After(h.now) {
			h.now = at
		}
		if id, one := h.m.Due(); one {
			h.need(id)
		}
		said := h.text.Len()
		h.step(func() { h.m.Fire(h.now, &h.out) })
		if text := h.text.String(); len(text) > said {
			h.text.Reset()
			h.printf("%s%v:\n%s", text[:said], since(h.now), text[said:])
		}
	}
}

// jump sets the clock, which the runner notices.
func (h *harness) jump(by time.Duration) {
	h.now = h.now.Add(by)
	h.m.Shift(by)
	h.advance(0)
}

func (h *harness) printf(format string, args ...any) { fmt.Fprintf(&h.text, format, args...) }

// said takes what was printed.
func (h *harness) said() string {
	defer h.text.Reset()
	return h.text.String()
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(epoch).String()
}

func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(c).Message
}

func topics(ts Topics) (s string) {
	for _, t := range ts {
		s += fmt.Sprintf(" %s%v", t.Name, t.Partitions)
	}
	return s
}

// record is a record in words.
func record(r state.Record) string {
	switch t := r.Txn; {
	case r.Tombstone:
		return "tombstone"
	case t == nil:
		return fmt.Sprintf("unreadable: %v", r.Problem)
	default:
		s := fmt.Sprintf("%v %v v%d", t.Status, t.Producer, t.Version)
		if t.Previous != t.Producer.ID {
			s += fmt.Sprintf(" previous=%d", t.Previous)
		}
		if t.Next != state.NoProducerID {
			s += fmt.Sprintf(" next=%d", t.Next)
		}
		return s + fmt.Sprintf(" timeout=%v started=%s updated=%s%s", t.Timeout, since(t.Started), since(t.Updated), topics(t.Topics))
	}
}

// answer is a response in words.
func answer(r Response) string {
	switch r := r.(type) {
	case *kmsg.InitProducerIDResponse:
		return granted(r.ErrorCode, r.ProducerID, r.ProducerEpoch)
	case *kmsg.EndTxnResponse:
		return granted(r.ErrorCode, r.ProducerID, r.ProducerEpoch)
	case *kmsg.AddOffsetsToTxnResponse:
		return code(r.ErrorCode)
	case Result:
		return code(r.Code)
	case *kmsg.AddPartitionsToTxnResponseTransaction:
		var s []string
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				s = append(s, fmt.Sprintf("%s-%d %s", t.Topic, p.Partition, code(p.ErrorCode)))
			}
		}
		return strings.Join(s, ", ")
	case *kmsg.DescribeTransactionsResponseTransactionState:
		s := fmt.Sprintf("%s %s %d/%d timeout=%dms start=%d", code(r.ErrorCode), r.State, r.ProducerID, r.ProducerEpoch, r.TimeoutMillis, r.StartTimestamp)
		for _, t := range r.Topics {
			s += fmt.Sprintf(" %s%v", t.Topic, t.Partitions)
		}
		return s
	case *kmsg.ListTransactionsResponse:
		s := ""
		for _, t := range r.TransactionStates {
			s += fmt.Sprintf("(%s %s %d)", t.TransactionalID, t.TransactionState, t.ProducerID)
		}
		if len(r.UnknownStateFilters) > 0 {
			s += fmt.Sprintf(" unknown: %v", r.UnknownStateFilters)
		}
		return s
	case Stale:
		return fmt.Sprintf("stale: connection %d is newer", r.Client.Conn)
	case Explanation:
		return explanation(r)
	case []Quarantine:
		s := ""
		for _, q := range r {
			s += fmt.Sprintf("(%s %x=%x: %v)", q.TransactionalID, q.Key, q.Value, q.Err)
		}
		return s
	}
	return fmt.Sprintf("%v", r)
}

func granted(c int16, id int64, epoch int16) string {
	if c != 0 || id < 0 {
		return code(c)
	}
	return fmt.Sprintf("NONE %d/%d", id, epoch)
}

func explanation(x Explanation) string {
	s := fmt.Sprintf("exists=%t", x.Exists)
	if x.Exists {
		deadline := ""
		if !x.Deadline.IsZero() {
			deadline = " deadline=" + since(x.Deadline)
		}
		s += fmt.Sprintf(" %s %v started=%s%s owner=%s %s conn=%d heard=%s%s", x.Status, x.Producer, since(x.Started), deadline, x.Owner.ID, x.Owner.Host, x.Owner.Conn, since(x.Heard), topics(x.Topics))
	}
	for _, e := range x.Events {
		s += fmt.Sprintf("\n    %s %v: %v", since(e.At), e.Rule, e)
	}
	return s
}
