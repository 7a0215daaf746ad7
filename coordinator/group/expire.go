package group

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// expire looks at one group: offsets that are past their time go, and the group
// with the last of them (KIP-211). It notes when to look again.
func (m *Machine) expire(now time.Time, e *entry, out *output) {
	m.sweep.remove(e)
	if m.revive(now, e, out); e.live == nil {
		return // none, not ours to expire, or in quarantine
	}
	hard, g := m.hard.Group(e.id), e.live
	if hard == nil || hard.Offsets() == 0 {
		m.expireGroup(e, out)
		return
	}
	if g.protocolType != "" && g.state != stateEmpty && (g.state != stateStable || !g.topicsKnown) {
		return // in a rebalance nothing expires, nor while it is unknown what is read
	}
	kept := false
	hard.EachOffset(func(topic string, partition int32, o state.Offset) {
		if g.subscribed(topic) {
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
	heap     []*entry  // by checkAt, then id
}

// next is when to look at the first group.
func (s *sweep) next() (time.Time, bool) {
	if len(s.heap) == 0 || s.interval <= 0 {
		return time.Time{}, false
	}
	if s.start.IsZero() {
		return time.Unix(0, 0), true // now, to learn when now is
	}
	const far = 100 * 365 * 24 * time.Hour // more overflows
	at := min(s.heap[0].checkAt.Sub(s.start), far)
	n := max((at+s.interval-1)/s.interval, 1)
	return s.start.Add(n * s.interval), true
}

// checkBy has a group looked at at the first sweep from a time on, if not before.
func (m *Machine) checkBy(e *entry, at time.Time) {
	if e.kind != kindClassic || e.place > 0 && !at.Before(e.checkAt) {
		return
	}
	e.checkAt = at
	m.sweep.put(e)
}

// checkSoon has a group looked at at the next sweep.
func (m *Machine) checkSoon(e *entry) { m.checkBy(e, m.now) }

// checkCommitted has a group looked at when offsets that are just written may expire.
func (m *Machine) checkCommitted(now time.Time, e *entry, expires time.Time) {
	if expires.IsZero() {
		expires = now.Add(m.cfg.Retention)
	}
	m.checkBy(e, expires)
}

func (s *sweep) put(e *entry) {
	if e.place == 0 {
		s.heap = append(s.heap, e)
		e.place = len(s.heap)
	}
	s.down(s.up(e.place - 1))
}

func (s *sweep) remove(e *entry) {
	if e.place == 0 {
		return
	}
	i, last := e.place-1, len(s.heap)-1
	s.swap(i, last)
	s.heap[last] = nil
	s.heap = s.heap[:last]
	e.place = 0
	if i < last {
		s.down(s.up(i))
	}
}

func (s *sweep) less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	if c := a.checkAt.Compare(b.checkAt); c != 0 {
		return c < 0
	}
	return a.id < b.id
}

func (s *sweep) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].place, s.heap[j].place = i+1, j+1
}

func (s *sweep) up(i int) int {
	for i > 0 && s.less(i, (i-1)/2) {
		s.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (s *sweep) down(i int) int {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s.heap); c++ {
			if s.less(c, least) {
				least = c
			}
		}
		if least == i {
			return i
		}
		s.swap(i, least)
		i = least
	}
}
