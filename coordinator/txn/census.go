package txn

// Census counts transactional ids by the state of their latest transaction.
type Census map[string]int

// Census adds the ids of the shard, in memory or not. It looks at each, so it is for now
// and then.
func (m *Machine) Census(c Census) {
	for _, e := range m.dir {
		switch {
		case e.quarantined:
			c[stateUnknown]++
		case e.stored:
			c[e.status.String()]++
		}
	}
}
