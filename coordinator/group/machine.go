package group

import (
	"fmt"
	"io"
	"time"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// Machine is the state machine of the groups of one shard.
type Machine struct {
	cfg  Config
	rand io.Reader // of member ids

	hard *state.Groups // written by Apply only
	dir  map[string]*entry
	idle idleList // entries that may be evicted, the longest unused first
	// resident is the weight of what is in memory.
	resident int

	now    time.Time // of the step
	timers timers
	sweep  sweep
	counts Counters
}

type output = machine.Output[state.Record, Response, struct{}]

var _ machine.Machine[Request, state.Record, Response, struct{}] = (*Machine)(nil)

// Counters counts since the machine was made, but for Quarantined, which is how many are.
type Counters struct {
	Rebalances     int64 // generations that got their assignments
	Evicted        int64 // members that were thrown out: silent, late to join or to sync
	OffsetCommits  int64
	OffsetsExpired int64
	OffsetsDeleted int64 // asked for, or with their group or topic
	GroupsExpired  int64
	GroupsDeleted  int64
	Quarantined    int64
}

// New returns a machine without groups. rand is where member ids come from.
func New(cfg Config, rand io.Reader) *Machine {
	if cfg.ResidentOffsets == 0 {
		cfg.ResidentOffsets = defaultResidentOffsets
	}
	m := &Machine{cfg: cfg, rand: rand, hard: state.NewGroups(), dir: map[string]*entry{}}
	m.sweep.interval = cfg.RetentionCheckInterval
	return m
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
		panic(fmt.Sprintf("group %q: %T before it was loaded", id, in.Req))
	}
	m.revive(m.now, e, out)
	if r, is := in.Req.(Rewrite); is { // of what is in quarantine, too
		out.Reply(in.Token, m.rewrite(e, r, out))
		m.settle(e)
		return
	}
	if e.quarantined {
		out.Reply(in.Token, refusal(in.Req))
		return
	}
	switch r := in.Req.(type) {
	case Commit:
		out.Reply(in.Token, m.commit(m.now, e, r, out))
	case TxnCommit:
		out.Reply(in.Token, m.txnCommit(m.now, e, r, out))
	case Fetch:
		out.Reply(in.Token, m.fetch(e, r))
	case Heartbeat:
		out.Reply(in.Token, m.heartbeat(m.now, e, r))
	case Join:
		m.join(m.now, in.Token, e, r, out)
	case Sync:
		m.syncGroup(m.now, in.Token, e, r, out)
	case Leave:
		out.Reply(in.Token, m.leave(m.now, e, r, out))
	case DeleteOffsets:
		out.Reply(in.Token, m.deleteOffsets(e, r, out))
	case SetOffsets:
		out.Reply(in.Token, m.setOffsets(m.now, e, r, out))
	case Describe:
		out.Reply(in.Token, m.describe(e))
	case Observe:
		out.Reply(in.Token, m.observe(e))
	case Delete:
		out.Reply(in.Token, m.delete(e, out))
	case ForgetTopics:
		out.Reply(in.Token, m.forgetTopics(e, r, out))
	default:
		panic(fmt.Sprintf("group %q: unknown request %T", id, in.Req))
	}
	m.settle(e)
}

// answerForAll answers what is about all groups of the shard.
func (m *Machine) answerForAll(req Request, out *output) Response {
	switch r := req.(type) {
	case Marker:
		return m.marker(r, out)
	case List:
		return m.list(r)
	case IDs:
		return m.ids()
	case Quarantined:
		return m.quarantined()
	case PendingOf:
		return m.hard.Open(r.Producer)
	case Rewrite:
		return rewriteOrphans(r, out)
	}
	panic(fmt.Sprintf("unknown request %T", req))
}

// step begins a step. Records hold milliseconds, and live state must be what a
// replay gives.
func (m *Machine) step(now time.Time) {
	m.now = now.Truncate(time.Millisecond)
	if m.sweep.start.IsZero() {
		m.sweep.start = m.now
	}
}

// Shift is part of machine.Shifter: sessions and join phases are about time passed, what
// expires is about dates.
func (m *Machine) Shift(by time.Duration) { m.timers.shift(by.Truncate(time.Millisecond)) }

// NextTimer is part of machine.Machine.
func (m *Machine) NextTimer() (time.Time, bool) {
	t := m.timers.first()
	at, some := m.sweep.next()
	if t != nil && (!some || !at.Before(t.when)) {
		return t.when, true
	}
	return at, some
}

// Due is part of machine.Machine.
func (m *Machine) Due() (string, bool) {
	t := m.timers.first()
	at, some := m.sweep.next()
	switch {
	case t != nil && (!some || !at.Before(t.when)):
		return t.entry.id, true
	case some && !m.sweep.start.IsZero():
		return m.sweep.Items[0].id, true
	}
	return "", false
}

// Fire is part of machine.Machine.
func (m *Machine) Fire(now time.Time, out *output) {
	m.step(now)
	t := m.timers.first()
	at, some := m.sweep.next()
	switch {
	case t != nil && (!some || !at.Before(t.when)):
		if !t.when.After(m.now) {
			m.fire(m.now, t, out)
		}
	case some && !at.After(m.now):
		if e := m.sweep.Items[0]; e.inMemory {
			m.expire(m.now, e, out)
			m.settle(e)
		}
	}
}

// Apply is part of machine.Machine.
func (m *Machine) Apply(offset storage.Offset, rec *state.Record) {
	switch rec.Kind {
	case state.KindMarker:
		m.applyMarker(offset, rec)
		return
	case state.KindOrphan:
		return
	}
	e := m.entry(rec.Group)
	g := m.hard.Apply(offset, rec)
	e.last = max(e.last, offset)
	m.measure(e, g, rec.Kind)
}
