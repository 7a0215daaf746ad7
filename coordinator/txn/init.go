package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

// init gives an id's producer its producer id and epoch, in Kafka's order. Who
// names none is a new producer and fences the one before. Who names its own goes
// on after an error (KIP-360), and may ask again if it did not hear the answer.
func (m *Machine) init(e *entry, r Init, out *output) Response {
	expected, given, valid := expectation(r)
	timeout := time.Duration(r.TransactionTimeoutMillis) * time.Millisecond
	t := m.hard.Txn(e.id)
	switch {
	case !valid:
		return initError(invalidRequest)
	case timeout <= 0 || timeout > m.cfg.MaxTimeout:
		return initError(invalidTransactionTimeout)
	case t == nil: // what it expects does not matter: the id may have expired
		return m.initNew(e, r, timeout, out)
	case t.Status.Preparing():
		return initError(concurrentTransactions)
	case given && !mayExpect(t, expected):
		return m.initFenced(e, r, t, expected)
	case t.Status == state.Ongoing:
		return m.initAborts(e, r, t, out)
	}
	last := t.Producer.Epoch.Exhausted()
	switch {
	case !given && last, given && last && expected == t.Producer:
		return m.initRotates(e, r, t, given, timeout, out)
	case !given:
		return m.initBumps(e, r, t, state.NoProducer, timeout, out)
	case expected == t.Producer:
		return m.initBumps(e, r, t, t.Producer, timeout, out)
	case expected == e.before:
		return m.initAgain(e, r, t, timeout, out)
	}
	return m.initFenced(e, r, t, expected)
}

// expectation is the producer that a request names: both of id and epoch, or none.
func expectation(r Init) (p Producer, given, valid bool) {
	p = Producer{ID: ProducerID(r.ProducerID), Epoch: Epoch(r.ProducerEpoch)}
	none := p == state.NoProducer
	return p, !none, none || p.ID != state.NoProducerID && p.Epoch != state.NoEpoch
}

// mayExpect says whether it is by its epoch that an expected producer is judged: it
// has the current id, or the one before in its last epoch.
func mayExpect(t *state.Txn, p Producer) bool {
	return p.ID == t.Producer.ID || p.ID == t.Previous && p.Epoch.Exhausted()
}

func (m *Machine) initNew(e *entry, r Init, timeout time.Duration, out *output) Response {
	if r.Fresh == nil {
		return NeedProducerID{}
	}
	t := state.New(*r.Fresh, timeout, m.now)
	m.write(e, t, out)
	m.note(e, Event{Rule: RuleInit, By: r.Client, Before: state.NoProducer, After: t.Producer})
	return m.initialised(e, r, t.Producer, state.NoProducer)
}

// initAborts fences the producer of an ongoing transaction, by an epoch that nobody
// is given: whoever asked waits for the abort and asks again.
func (m *Machine) initAborts(e *entry, r Init, t *state.Txn, out *output) Response {
	if !m.fence(e, t, RuleInitAborts, r.Client, r.Fresh, out) {
		return NeedProducerID{}
	}
	m.counts.Fenced++
	return initError(concurrentTransactions)
}

func (m *Machine) initBumps(e *entry, r Init, t *state.Txn, before Producer, timeout time.Duration, out *output) Response {
	p := Producer{ID: t.Producer.ID, Epoch: t.Producer.Epoch.Next()}
	m.write(e, t.Initialised(p, p.ID, timeout, m.now), out)
	m.note(e, Event{Rule: RuleInit, By: r.Client, Before: t.Producer, After: p})
	return m.initialised(e, r, p, before)
}

// initRotates gives up a producer id without epochs. Only a producer that named it may
// ask for the new one again: for another, no id comes before it.
func (m *Machine) initRotates(e *entry, r Init, t *state.Txn, named bool, timeout time.Duration, out *output) Response {
	fresh, has := freshFor(t, r.Fresh)
	if !has {
		return NeedProducerID{}
	}
	p, before, previous := Producer{ID: fresh}, state.NoProducer, state.NoProducerID
	if named {
		before, previous = t.Producer, t.Producer.ID
	}
	m.write(e, t.Initialised(p, previous, timeout, m.now), out)
	m.counts.Rotated++
	e.retired = state.Last(t.Producer.ID)
	m.note(e, Event{Rule: RuleRotated, By: r.Client, Before: t.Producer, After: p})
	return m.initialised(e, r, p, before)
}

// initAgain answers what was answered before: there can be no other producer, or the
// epoch would be another, or nobody be remembered as the one before.
func (m *Machine) initAgain(e *entry, r Init, t *state.Txn, timeout time.Duration, out *output) Response {
	m.write(e, t.Initialised(t.Producer, t.Previous, timeout, m.now), out)
	r.Conn = max(r.Conn, e.owner.Conn) // it may have come late
	return m.initialised(e, r, t.Producer, e.before)
}

func (m *Machine) initFenced(e *entry, r Init, t *state.Txn, expected Producer) Response {
	m.refused(e, t, "InitProducerId", r.Client, expected)
	return initError(producerFenced)
}

// initialised is the answer to whom the producer is from now on.
func (m *Machine) initialised(e *entry, r Init, p, before Producer) Response {
	e.met, e.before = true, before
	e.owner, e.heard = r.Client, m.now
	resp := initError(none)
	resp.ProducerID, resp.ProducerEpoch = int64(p.ID), int16(p.Epoch)
	return resp
}

// freshFor is a fresh producer id, if one is given that is not the producer's own.
func freshFor(t *state.Txn, fresh *ProducerID) (ProducerID, bool) {
	if fresh == nil || *fresh == t.Producer.ID || *fresh < 0 {
		return state.NoProducerID, false
	}
	return *fresh, true
}

func initError(code int16) *kmsg.InitProducerIDResponse {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = code, -1, -1
	return resp
}
