// Package shard runs one state machine: it makes what the machine decides
// durable and lets replies out only then.
//
// # The gate
//
// A step is one Handle, Fire or Loaded. Its records are applied at once, so the
// next step sees them, and appended to the log. Its replies and effects get a
// gate: the log's end after the step. They leave when the log has told that it is durable
// up to there. A step without records has a gate too, since what it saw may not
// be durable yet: an answer never tells of something that a crash could undo.
// There is no other way for a reply to leave.
//
// # Failure
//
// When an append fails nobody knows whether it was written. So there is nothing
// to roll back: every waiter is told ErrLost, the machine is dropped, and the
// shard opens again at its next use from what the log then holds. Opening is
// the same after a crash. Callbacks of the log that was are told apart by the
// shard's epoch and ignored.
//
// # Who runs a step
//
// The caller does, holding the shard's lock. A goroutine per shard would do the
// same work with two more hand-overs per request; with a machine that never waits,
// the lock is held for microseconds, but for the loading of an entity.
// Replies are called after the lock is released, so they may call the shard
// again; they must not block.
package shard
