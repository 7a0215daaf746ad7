package group

import (
	"time"

	"github.com/kcoord/kcoord/internal/timerheap"
)

// timerKind says what a timer is about.
type timerKind uint8

const (
	timerSession      timerKind = iota // of a member or a pending one: it has not been heard of
	timerJoinPhase                     // members that have not joined again are out
	timerInitialDelay                  // an empty group waits for more members than its first (KIP-134)
	timerSync                          // members that have not fetched their assignment are out
)

// timer is one clock of a group or of a member. It lies in the heap by when,
// which may be before its deadline: a heartbeat only moves the deadline, and the
// timer goes to its new place when the old one has come. So the heap holds each
// timer once, however often sessions are refreshed.
type timer struct {
	kind     timerKind
	entry    *entry
	member   *member // of timerSession
	deadline time.Time
	when     time.Time
	seq      uint64 // of equal ones the first armed is the first to fire
	place    int    // 0: not armed
}

// Place is part of timerheap.Queued.
func (t *timer) Place() *int { return &t.place }

// Before is part of timerheap.Queued.
func (t *timer) Before(o *timer) bool {
	if c := t.when.Compare(o.when); c != 0 {
		return c < 0
	}
	return t.seq < o.seq
}

// timers are the timers of a shard, the earliest first.
type timers struct {
	timerheap.Queue[*timer]
	seq uint64
}

// arm sets a timer, armed or not, to its deadline.
func (ts *timers) arm(t *timer, deadline time.Time) {
	t.deadline = deadline
	if t.place == 0 || deadline.Before(t.when) {
		ts.move(t)
	}
}

// move gives a timer its place by its deadline.
func (ts *timers) move(t *timer) {
	ts.seq++
	t.when, t.seq = t.deadline, ts.seq
	ts.Put(t)
}

// shift moves all timers. Their order stays.
func (ts *timers) shift(by time.Duration) {
	for _, t := range ts.Items {
		t.deadline, t.when = t.deadline.Add(by), t.when.Add(by)
	}
}

// first is the earliest timer, or nil.
func (ts *timers) first() *timer {
	if len(ts.Items) == 0 {
		return nil
	}
	return ts.Items[0]
}

// fire acts on a timer that is due.
func (m *Machine) fire(now time.Time, t *timer, out *output) {
	if t.deadline.After(now) {
		m.timers.move(t)
		return
	}
	m.timers.Remove(t)
	e := t.entry
	if m.revive(now, e, out); e.live == nil {
		return
	}
	switch t.kind {
	case timerSession:
		m.sessionOver(now, e, t.member, out)
	case timerJoinPhase:
		m.completeJoin(now, e, out)
	case timerInitialDelay:
		m.initialDelayOver(now, e, out)
	case timerSync:
		m.syncOver(now, e, out)
	}
	m.settle(e)
}
