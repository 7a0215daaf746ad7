// Package state is what records rebuild: the hard state of the groups of one
// shard. Apply is its only writer, and gives the same state whether the records
// come from a decision just made or from the log after a crash; everything else
// only looks. What a failover may lose (parked requests, timers, a rebalance
// under way) is not here but in package group.
package state
