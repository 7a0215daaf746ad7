package txn

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

// end commits or aborts a producer's transaction: it is answered as soon as that
// is decided.
func (m *Machine) end(e *entry, r End, out *output) Response {
	p := Producer{ID: ProducerID(r.ProducerID), Epoch: Epoch(r.ProducerEpoch)}
	if stale, is := m.control(e, "EndTxn", r.Client, p); is {
		return stale
	}
	t := m.hard.Txn(e.id)
	if t == nil {
		return endReply(invalidProducerIDMapping)
	}
	if r.TransactionVersion < 2 {
		return m.endV1(e, r, t, p, out)
	}
	return m.endV2(e, r, t, p, out)
}

// endV1 is EndTxn up to version 4: the epoch stays, so an end that is told again
// looks like that of the next transaction.
func (m *Machine) endV1(e *entry, r End, t *state.Txn, p Producer, out *output) Response {
	switch {
	case t.Producer.ID != p.ID:
		return endReply(invalidProducerIDMapping)
	case t.Producer.Epoch != p.Epoch:
		m.refused(e, t, "EndTxn", r.Client, p)
		return endReply(producerFenced)
	case t.Status.Preparing(): // whichever way it was decided
		return endReply(concurrentTransactions)
	case t.Status == state.Ongoing:
		m.decide(e, t, r.Commit, 0, false, state.NoProducerID, out)
		e.ownAbort = !r.Commit
		return endReply(none)
	case t.Status == ended(r.Commit):
		return endReply(none)
	}
	return endReply(invalidTxnState)
}

// endV2 is EndTxn from version 5 on (KIP-890): the epoch is over with the
// transaction, and the answer tells the next. So whoever names the epoch before has
// not heard the answer, and who names the current one speaks of a new transaction,
// which it may abort even if it has not begun.
func (m *Machine) endV2(e *entry, r End, t *state.Txn, p Producer, out *output) Response {
	if t.Status.Preparing() {
		return endReply(concurrentTransactions) // before the epoch: KAFKA-18464
	}
	over := t.Status == state.CompleteCommit || t.Status == state.CompleteAbort
	rotated := over && p.ID != state.NoProducerID && p == t.Before() && p.ID != t.Producer.ID
	again := over && p.Epoch < t.Producer.Epoch && p.Epoch+1 == t.Producer.Epoch && !t.Producer.Epoch.Fences() || rotated
	retired := t.Status == state.Empty && t.Producer.Epoch == 0 && p.ID != state.NoProducerID && p == e.retired
	switch {
	case t.Producer.ID != p.ID && !rotated && !retired:
		return endReply(invalidProducerIDMapping)
	case t.Producer.Epoch != p.Epoch && !again, t.Producer.Epoch.Fences():
		m.refused(e, t, "EndTxn", r.Client, p)
		return endReply(producerFenced)
	case again && t.Status == ended(r.Commit):
		return endsAs(t.Producer)
	case again && r.Commit && !e.ownAbort:
		// It was aborted over its head (KAFKA-20785). Kafka 4.4 answers INVALID_TXN_STATE,
		// which tells a producer that it has gone wrong, and not that it is fenced.
		m.refused(e, t, "EndTxn", r.Client, p)
		return endReply(producerFenced)
	case again:
		return endReply(invalidTxnState)
	case t.Status != state.Ongoing && r.Commit:
		return endReply(invalidTxnState)
	}
	return m.endNow(e, r, t, out)
}

// endNow ends a transaction of version 2, under the next epoch or, after the last, with a new
// producer id.
func (m *Machine) endNow(e *entry, r End, t *state.Txn, out *output) Response {
	next := state.NoProducerID
	if t.Producer.Epoch.Exhausted() {
		fresh, has := freshFor(t, r.Fresh)
		if !has {
			return NeedProducerID{}
		}
		next = fresh
		m.counts.Rotated++
		m.note(e, Event{Rule: RuleRotated, By: r.Client, Before: t.Producer, After: Producer{ID: fresh}})
	}
	n := m.decide(e, t, r.Commit, 2, true, next, out)
	e.before, e.ownAbort = t.Producer, !r.Commit
	return endsAs(n.Successor())
}

// ended is the state of a transaction that ended so.
func ended(commit bool) state.Status {
	if commit {
		return state.CompleteCommit
	}
	return state.CompleteAbort
}

// decide is the only way in which a transaction ends.
func (m *Machine) decide(e *entry, t *state.Txn, commit bool, version int16, bump bool, next ProducerID, out *output) state.Txn {
	n := t.Prepared(commit, version, bump, next, m.now)
	m.write(e, n, out)
	if commit {
		m.counts.Committed++
	} else {
		m.counts.Aborted++
	}
	m.carryOn(e, &n, out)
	return n
}

func endReply(code int16) *kmsg.EndTxnResponse {
	resp := kmsg.NewPtrEndTxnResponse()
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = code, -1, -1
	return resp
}

// endsAs tells a producer who it is from now on.
func endsAs(p Producer) Response {
	resp := endReply(none)
	resp.ProducerID, resp.ProducerEpoch = int64(p.ID), int16(p.Epoch)
	return resp
}
