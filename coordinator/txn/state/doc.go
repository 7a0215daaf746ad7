// Package state is what records rebuild: the hard state of the transactional
// ids of one shard, and the one table of what may follow what. Apply is its only
// writer, and gives the same state whether the records come from a decision just
// made or from the log after a crash; everything else only looks. A Txn is a
// value that never changes: a transition makes the next one, which is what a
// record holds. What a failover may lose (who the producer is, the epoch it had
// before, timers) is not here but in package txn.
package state
