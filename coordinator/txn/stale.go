package txn

// control notes that a producer's control request (AddPartitionsToTxn,
// AddOffsetsToTxn, EndTxn) came on a connection, or says that it came too late.
//
// Kafka's transaction version 1 leaves a hole: a producer that times out, connects
// anew and goes on with the same epoch may have its old request arrive late, and
// end the transaction that it has begun since. Version 2 closes it, as each
// transaction has an epoch of its own. Here connections close it: a producer sends these
// requests on one at a time, so once a newer connection has carried one, what comes
// on an older one is of a transaction that is over. Only requests of the current
// producer count: what a fenced one sends says nothing about it.
func (m *Machine) control(e *entry, request string, by Client, p Producer) (Stale, bool) {
	t := m.hard.Txn(e.id)
	if t == nil || t.Producer != p {
		return Stale{}, false
	}
	if m.cfg.FenceStale && by.Conn != 0 && by.Conn < e.owner.Conn {
		m.counts.Stale++
		m.note(e, Event{Rule: RuleStale, By: by, Request: request, Before: p, After: p})
		return Stale{Client: e.owner}, true
	}
	by.Conn = max(by.Conn, e.owner.Conn)
	e.owner, e.heard = by, m.now
	return Stale{}, false
}
