package group

import "time"

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
	place    int    // in the heap, from 1; 0: not armed
}

// timers is a heap of timers, the earliest first.
type timers struct {
	heap []*timer
	seq  uint64
}

// arm sets a timer, armed or not, to its deadline.
func (ts *timers) arm(t *timer, deadline time.Time) {
	t.deadline = deadline
	switch {
	case t.place == 0:
		ts.heap = append(ts.heap, t)
		t.place = len(ts.heap)
		ts.put(t, deadline)
	case deadline.Before(t.when):
		ts.put(t, deadline)
	}
}

// put gives an armed timer its place by when.
func (ts *timers) put(t *timer, when time.Time) {
	ts.seq++
	t.when, t.seq = when, ts.seq
	ts.down(ts.up(t.place - 1))
}

// cancel takes a timer out.
func (ts *timers) cancel(t *timer) {
	if t.place == 0 {
		return
	}
	i, last := t.place-1, len(ts.heap)-1
	ts.swap(i, last)
	ts.heap[last] = nil
	ts.heap = ts.heap[:last]
	t.place = 0
	if i < last {
		ts.down(ts.up(i))
	}
}

// first is the earliest timer, or nil.
func (ts *timers) first() *timer {
	if len(ts.heap) == 0 {
		return nil
	}
	return ts.heap[0]
}

func (ts *timers) less(i, j int) bool {
	a, b := ts.heap[i], ts.heap[j]
	if c := a.when.Compare(b.when); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}

func (ts *timers) swap(i, j int) {
	ts.heap[i], ts.heap[j] = ts.heap[j], ts.heap[i]
	ts.heap[i].place, ts.heap[j].place = i+1, j+1
}

func (ts *timers) up(i int) int {
	for i > 0 && ts.less(i, (i-1)/2) {
		ts.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (ts *timers) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(ts.heap); c++ {
			if ts.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		ts.swap(i, least)
		i = least
	}
}

// fire acts on a timer that is due.
func (m *Machine) fire(now time.Time, t *timer, out *output) {
	if t.deadline.After(now) {
		m.timers.put(t, t.deadline)
		return
	}
	m.timers.cancel(t)
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
