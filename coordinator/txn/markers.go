package txn

import "github.com/kcoord/kcoord/coordinator/txn/state"

// sendMarkers has the markers of a decided transaction written. Their epoch is the
// one after the decision: where that bumped it, what the producer still sends in its
// own epoch is refused by the partitions, too.
func sendMarkers(id string, t *state.Txn) SendMarkers {
	return SendMarkers{
		TransactionalID:    id,
		Attempt:            attempt(t),
		Commit:             t.Status == state.PrepareCommit,
		Topics:             t.Topics,
		TransactionVersion: t.Version,
	}
}

// carryOn has markers written that are still awaited. If there are none, as after an
// abort of nothing, the transaction is complete.
func (m *Machine) carryOn(e *entry, t *state.Txn, out *output) {
	if len(t.Topics) == 0 {
		m.write(e, t.Completed(m.now), out)
	} else {
		out.Effect(sendMarkers(e.id, t))
	}
}

func attempt(t *state.Txn) Attempt { return Attempt{t.Producer, t.Updated} }

// awaited is the transaction whose markers an attempt is about, if they are still awaited.
func (m *Machine) awaited(e *entry, a Attempt) (*state.Txn, bool) {
	t := m.hard.Txn(e.id)
	return t, t != nil && t.Status.Preparing() && a.Is(attempt(t))
}

func (m *Machine) markersDone(e *entry, r MarkersDone, out *output) Response {
	if t, is := m.awaited(e, r.Attempt); is {
		done := t.Topics
		if r.Topics != nil {
			done = state.TopicsOf(r.Topics...)
		}
		m.marked(e, t, done, out)
	}
	return Result{none}
}

func (m *Machine) partitionsGone(e *entry, r PartitionsGone, out *output) Response {
	if t, is := m.awaited(e, r.Attempt); is {
		gone := state.TopicsOf(r.Topics...)
		left := t.Topics.Without(gone)
		if n := t.Topics.Len() - left.Len(); n > 0 {
			m.counts.Gone += int64(n)
			m.note(e, Event{Rule: RuleGone, Before: t.Producer, After: t.Producer, Topics: t.Topics.Without(left)})
		}
		m.marked(e, t, gone, out)
	}
	return Result{none}
}

// marked takes partitions from those whose markers are awaited. With the last of
// them the transaction is complete.
func (m *Machine) marked(e *entry, t *state.Txn, done Topics, out *output) {
	left := t.Topics.Without(done)
	switch {
	case len(left) == 0:
		m.write(e, t.Completed(m.now), out)
	case left.Len() < t.Topics.Len():
		m.write(e, t.Left(left), out)
	}
}
