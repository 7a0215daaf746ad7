package txn

import (
	"time"

	"github.com/kcoord/kcoord/internal/timerheap"
)

// sweep looks at ids at fixed times, one interval apart, as Kafka's schedulers
// do. Each id is set to the moment from which something of it is due, and is looked at
// at the first of those times from then on.
type sweep struct {
	interval time.Duration
	timers   timerheap.Heap[*entry]
}

// next is when to look at the first id.
func (s *sweep) next(start time.Time) (time.Time, bool) {
	first := s.timers.First()
	if first == nil || s.interval <= 0 {
		return time.Time{}, false
	}
	if start.IsZero() {
		return time.Unix(0, 0), true // now, to learn when now is
	}
	const far = 100 * 365 * 24 * time.Hour // more overflows
	in := min(first.When().Sub(start), far)
	n := max((in+s.interval-1)/s.interval, 1)
	return start.Add(n * s.interval), true
}

// nextSweep is which sweep looks at something next, and when, if any does.
func (m *Machine) nextSweep() (at time.Time, s *sweep, some bool) {
	abort, aborts := m.aborts.next(m.start)
	expire, expires := m.expiry.next(m.start)
	if expires && (!aborts || expire.Before(abort)) {
		return expire, &m.expiry, true
	}
	return abort, &m.aborts, aborts
}

// again has an id looked at at the next time, since it could not be dealt with now.
func (m *Machine) again(s *sweep, t *timerheap.Timer[*entry]) {
	s.timers.Set(t, m.now.Add(time.Millisecond))
}
