package txn

import "github.com/kcoord/kcoord/coordinator/txn/state"

// fence aborts an ongoing transaction over its producer's head: under the next epoch,
// which nobody is told. It is false, and nothing has changed, when that needs a
// fresh producer id.
//
// With transaction.version 2 the producer may still learn of it (Kafka 4.4.0 does so whatever
// the client's own version): it is remembered as the one before, so that who retries
// after a timeout goes on by an InitProducerId with its own id and epoch. And after
// the last epoch the id is given up at once.
func (m *Machine) fence(e *entry, t *state.Txn, why Rule, by Client, fresh *ProducerID, out *output) bool {
	next, before, after, version := state.NoProducerID, state.NoProducer, t.Producer, int16(0)
	if m.cfg.TransactionVersion >= 2 {
		before, version = t.Producer, m.cfg.TransactionVersion
		if t.Producer.Epoch.Exhausted() {
			id, has := freshFor(t, fresh)
			if !has {
				return false
			}
			next = id
			m.counts.Rotated++
		}
	}
	bump := !t.Producer.Epoch.Fences()
	if bump {
		after.Epoch = after.Epoch.Next()
	}
	m.decide(e, t, false, version, bump, next, out)
	e.before, e.ownAbort = before, false
	m.note(e, Event{Rule: why, By: by, Before: t.Producer, After: after})
	return true
}

// timedOut aborts a transaction that has taken too long. Where it needs a fresh
// producer id it asks for one, and is looked at again meanwhile.
func (m *Machine) timedOut(e *entry, out *output) {
	t := m.hard.Txn(e.id)
	if t == nil || t.Status != state.Ongoing {
		m.aborts.timers.Cancel(&e.aborts)
		return
	}
	if m.fence(e, t, RuleTimeout, e.owner, nil, out) {
		m.counts.TimedOut++
		return
	}
	m.again(&m.aborts, &e.aborts)
	only := t.Producer
	out.Effect(WantsProducerID{Abort{TransactionalID: e.id, Only: &only, timedOut: true}})
}

// abort aborts a transaction since an operator wants it, or its timeout does and
// now has a producer id for it.
func (m *Machine) abort(e *entry, r Abort, out *output) Response {
	t := m.hard.Txn(e.id)
	switch {
	case t == nil:
		return Result{transactionalIDNotFound}
	case r.Only != nil && *r.Only != t.Producer:
		return Result{producerFenced}
	case t.Status.Preparing():
		out.Effect(sendMarkers(e.id, t))
		return Result{concurrentTransactions}
	case t.Status != state.Ongoing, r.timedOut && m.deadline(e, t).After(m.now):
		return Result{invalidTxnState}
	}
	why, by, count := RuleAdmin, r.Client, &m.counts.Killed
	if r.timedOut {
		why, by, count = RuleTimeout, e.owner, &m.counts.TimedOut
	}
	if !m.fence(e, t, why, by, r.Fresh, out) {
		return NeedProducerID{}
	}
	*count++
	return Result{none}
}
