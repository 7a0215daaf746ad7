package txn

import (
	"container/list"
	"fmt"
	"io"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/storage"
)

// Machine is the state machine of the transactional ids of one shard.
type Machine struct {
	cfg Config

	hard     *state.Txns // written by Apply only
	dir      map[string]*entry
	idle     list.List // of *entry: those that may be evicted, the longest unused first
	resident int       // ids in memory

	now    time.Time     // of the step
	start  time.Time     // of the sweeps' intervals: the first step
	jumped time.Duration // how far the clock has jumped since then
	aborts sweep         // of transactions that take too long
	expiry sweep         // of ids that nobody uses
	events list.List     // of *Event: all ids', in their order
	counts Counters
}

type output = machine.Output[state.Record, Response, Effect]

var (
	_ machine.Machine[Request, state.Record, Response, Effect] = (*Machine)(nil)
	_ machine.Shifter                                          = (*Machine)(nil)
)

// Counters counts since the machine was made, but for Quarantined, which is how many are.
type Counters struct {
	Committed   int64 // transactions decided, by how they end
	Aborted     int64 // with the following ones
	TimedOut    int64
	Fenced      int64 // producers that another's Init fenced in an open transaction
	Killed      int64 // aborted by Abort
	Rotated     int64 // producer ids given up since their epochs were exhausted
	Refused     int64 // requests of fenced producers
	Stale       int64 // requests refused since they came on an older connection
	Gone        int64 // partitions without their marker since they were deleted
	Expired     int64
	Quarantined int64
}

// New returns a machine without transactional ids.
func New(cfg Config) *Machine {
	if cfg.Resident == 0 {
		cfg.Resident = defaultResident
	}
	if cfg.Events == 0 {
		cfg.Events = defaultEvents
	}
	return &Machine{
		cfg: cfg, hard: state.NewTxns(), dir: map[string]*entry{},
		aborts: sweep{interval: cfg.AbortInterval}, expiry: sweep{interval: cfg.RemoveInterval},
	}
}

// Counters returns the counters as they are between two steps.
func (m *Machine) Counters() Counters { return m.counts }

// Touches is part of machine.Machine.
func (m *Machine) Touches(req Request) (string, bool) { return req.Entity() }

// Handle is part of machine.Machine.
func (m *Machine) Handle(now time.Time, in machine.Input[Request], out *output) {
	m.step(now)
	id, one := in.Req.Entity()
	if !one {
		out.Reply(in.Token, m.answerForAll(in.Req, out))
		return
	}
	e := m.dir[id]
	if e == nil || !e.inMemory {
		panic(fmt.Sprintf("transactional id %q: %T before it was loaded", id, in.Req))
	}
	out.Reply(in.Token, m.answer(e, in.Req, out))
	m.settle(e)
}

// answer decides on what is about one id.
func (m *Machine) answer(e *entry, req Request, out *output) Response {
	if r, is := req.(Rewrite); is { // of what is in quarantine, too
		return m.rewrite(e, r, out)
	}
	if e.quarantined {
		return m.refusal(e, req, coordinatorLoadInProgress)
	}
	switch r := req.(type) {
	case AddImplicit:
		return Result{m.addImplicit(e, r, out)}
	case VerifyOffsets:
		return Result{m.verifyOffsets(e, r)}
	case AddPartitions:
		return m.addPartitions(e, r, out)
	case AddOffsets:
		return m.addOffsets(e, r, out)
	case End:
		return m.end(e, r, out)
	case MarkersDone:
		return m.markersDone(e, r, out)
	case PartitionsGone:
		return m.partitionsGone(e, r, out)
	case Init:
		return m.init(e, r, out)
	case Abort:
		return m.abort(e, r, out)
	case Describe:
		return m.describe(e)
	case Explain:
		return m.explain(e)
	}
	panic(fmt.Sprintf("transactional id %q: unknown request %T", e.id, req))
}

// answerForAll answers what is about all ids of the shard, or about none.
func (m *Machine) answerForAll(req Request, out *output) Response {
	switch r := req.(type) {
	case List:
		return m.list(r)
	case Quarantined:
		return m.quarantined()
	case Rewrite:
		return rewriteOrphans(r, out)
	}
	return m.refusal(nil, req, invalidRequest)
}

// step begins a step. Records hold milliseconds, and live state must be what a
// replay gives.
func (m *Machine) step(now time.Time) {
	m.now = now.Truncate(time.Millisecond)
	if m.start.IsZero() {
		m.start = m.now
	}
}

// Shift is part of machine.Shifter: how long a transaction may take is about time passed, and
// so are the intervals of the sweeps. When an id expires is about a date.
func (m *Machine) Shift(by time.Duration) {
	by = by.Truncate(time.Millisecond)
	if !m.start.IsZero() {
		m.start = m.start.Add(by)
	}
	m.jumped += by
	m.aborts.timers.Shift(by)
}

// begins starts the time of a transaction, or starts it anew when it is loaded. Times in
// records don't go back, so that after the clock was set back a transaction may begin in
// the future: then it begins now, or it could stay open for as long as that is away.
func (m *Machine) begins(e *entry, t *state.Txn) {
	if t.Unbounded() {
		return
	}
	e.jumped = m.jumped + max(t.Started.Sub(m.now), 0)
	m.aborts.timers.Set(&e.aborts, m.deadline(e, t))
}

// deadline is when an ongoing transaction has taken too long.
func (m *Machine) deadline(e *entry, t *state.Txn) time.Time {
	return t.Deadline().Add(m.jumped - e.jumped)
}

// write makes a transaction the id's next.
func (m *Machine) write(e *entry, t state.Txn, out *output) {
	out.Record(state.Record{Kind: state.KindTxn, ID: e.id, Txn: &t})
}

// NextTimer is part of machine.Machine.
func (m *Machine) NextTimer() (time.Time, bool) {
	at, _, some := m.nextSweep()
	return at, some
}

// Due is part of machine.Machine.
func (m *Machine) Due() (string, bool) {
	_, s, some := m.nextSweep()
	if !some || m.start.IsZero() {
		return "", false
	}
	return s.timers.First().Of.id, true
}

// Fire is part of machine.Machine.
func (m *Machine) Fire(now time.Time, out *output) {
	m.step(now)
	at, s, some := m.nextSweep()
	if !some || at.After(m.now) {
		return
	}
	e := s.timers.First().Of
	if s == &m.aborts {
		m.timedOut(e, out)
	} else {
		m.expire(e, out)
	}
	m.settle(e)
}

// Apply is part of machine.Machine.
func (m *Machine) Apply(offset storage.Offset, rec *state.Record) {
	if rec.Kind == state.KindOther {
		return
	}
	m.hard.Apply(offset, rec)
	e := m.entry(rec.ID)
	e.last = max(e.last, offset)
	m.learn(e, rec)
}

// Dump writes the hard state that is in memory in words, the same for the same
// state: how tests compare what is live with what a replay gives.
func (m *Machine) Dump(w io.Writer) { m.hard.Dump(w) }
