package txn

// SetTransactionVersion changes the finalized transaction.version from the next request on.
func (m *Machine) SetTransactionVersion(v int16) { m.cfg.TransactionVersion = v }
