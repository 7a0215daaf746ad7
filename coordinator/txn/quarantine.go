package txn

// refusal answers a request that is not decided on: of the empty id, and about an
// id in quarantine, which is told to try again. Nothing can be said about such
// an id, and least of all that it has no transaction.
func (m *Machine) refusal(e *entry, req Request, code int16) Response {
	switch r := req.(type) {
	case Init:
		return initError(code)
	case AddPartitions:
		if r.VerifyOnly {
			return AnswerOnce(r.AddPartitionsToTxnRequestTransaction, func(string, int32) int16 { return code })
		}
		return AnswerPartitions(r.AddPartitionsToTxnRequestTransaction, func(string, int32) int16 { return code })
	case AddOffsets:
		return offsetsReply(code)
	case End:
		return endReply(code)
	case Describe:
		return describeError(r.TransactionalID, code)
	case Explain:
		if e == nil {
			return Explanation{TransactionalID: r.TransactionalID}
		}
		return m.explain(e)
	}
	return Result{code}
}

// quarantined lists the ids in quarantine that are known: those that were
// unreadable when the shard opened, and those found since.
func (m *Machine) quarantined() []Quarantine {
	var out []Quarantine
	for _, id := range m.sorted() {
		if r, is := m.hard.Problem(id); is {
			out = append(out, Quarantine{TransactionalID: id, Key: r.Key, Value: r.Value, Err: r.Problem})
		}
	}
	return out
}
