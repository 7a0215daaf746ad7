package group

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/internal/timerheap"
)

// expire looks at one group: offsets that are past their time go, and the group
// with the last of them (KIP-211). It notes when to look again.
func (m *Machine) expire(now time.Time, e *entry, out *output) {
	m.sweep.Remove(e)
	if m.revive(now, e, out); e.live == nil {
		return // none, not ours to expire, or in quarantine
	}
	hard, g := m.hard.Group(e.id), e.live
	if hard == nil || hard.Offsets()+hard.Pending() == 0 {
		m.expireGroup(e, out)
		return
	}
	if g.protocolType != "" && g.state != stateEmpty && (g.state != stateStable || !g.topicsKnown) {
		return // in a rebalance nothing expires, nor while it is unknown what is read
	}
	kept := hard.Pending() > 0 // until their marker has it looked at again
	hard.EachOffset(func(topic string, partition int32, o state.Offset) {
		if g.subscribed(topic) || hard.HasPending(topic, partition) {
			kept = true
			return
		}
		at := m.expiresAt(g, o)
		if at.After(now) {
			kept = true
			m.checkBy(e, at)
			return
		}
		m.counts.OffsetsExpired += int64(m.deleteOffset(hard, topic, partition, out))
	})
	if !kept {
		m.expireGroup(e, out)
	}
}

// expiresAt is when an offset's time is over: as it was committed with (v2 to v4), else
// the retention after the group became empty, else after the commit.
func (m *Machine) expiresAt(g *liveGroup, o state.Offset) time.Time {
	switch {
	case !o.Expires.IsZero():
		return o.Expires
	case g.protocolType != "" && g.state == stateEmpty && !g.since.IsZero():
		return g.since.Add(m.cfg.Retention)
	}
	return o.Committed.Add(m.cfg.Retention)
}

// expireGroup ends a group without offsets, unless someone is in it or, other
// than in Kafka, was told to join it: its id would be unknown a moment later.
func (m *Machine) expireGroup(e *entry, out *output) {
	if e.live.idle() {
		m.end(e, out)
		m.counts.GroupsExpired++
	}
}

// sweep is the order in which groups are looked at for what has expired. As in
// Kafka that happens at fixed times, and only then.
type sweep struct {
	interval time.Duration
	start    time.Time // of the intervals: the first step
	timerheap.Queue[*entry]
}

// Place is part of timerheap.Queued.
func (e *entry) Place() *int { return &e.place }

// Before is part of timerheap.Queued.
func (e *entry) Before(o *entry) bool {
	if c := e.checkAt.Compare(o.checkAt); c != 0 {
		return c < 0
	}
	return e.id < o.id
}

// next is when to look at the first group.
func (s *sweep) next() (time.Time, bool) {
	if len(s.Items) == 0 || s.interval <= 0 {
		return time.Time{}, false
	}
	if s.start.IsZero() {
		return time.Unix(0, 0), true // now, to learn when now is
	}
	const far = 100 * 365 * 24 * time.Hour // more overflows
	at := min(s.Items[0].checkAt.Sub(s.start), far)
	n := max((at+s.interval-1)/s.interval, 1)
	return s.start.Add(n * s.interval), true
}

// checkBy has a group looked at at the first sweep from a time on, if not before.
func (m *Machine) checkBy(e *entry, at time.Time) {
	if e.kind != kindClassic || e.place > 0 && !at.Before(e.checkAt) {
		return
	}
	e.checkAt = at
	m.sweep.Put(e)
}

// checkSoon has a group looked at at the next sweep.
func (m *Machine) checkSoon(e *entry) { m.checkBy(e, m.now) }

// checkCommitted has a group looked at when offsets that are just written may expire.
func (m *Machine) checkCommitted(now time.Time, e *entry, expires time.Time) {
	if e.live != nil {
		m.checkBy(e, m.expiresAt(e.live, state.Offset{Committed: now, Expires: expires}))
	}
}
