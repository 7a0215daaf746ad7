// Package storage says what a coordinator's log is: an ordered, durable sequence
// of Kafka records for each shard, and beside it the latest record of each key.
//
// The log decides. A shard hands over the records of its steps with Append and
// learns through the durable callback up to which offset they have reached the
// disk; nothing that depends on them may leave the process before that. All
// shards of one backend share the sync: what was appended while one is under
// way goes into the next, so group commit needs no linger.
//
// The key table is a view of the log, never a second truth. It may lag behind
// the log's end (it is folded in the background), but Load and Entities answer
// as if it did not: a record that was durable when they were called is seen.
// Compaction removes from the log only what the view no longer shows, and keeps a
// commit's control record for as long as it shows a record of its transaction: who
// reads the log as Kafka does gets the same state.
//
// The backends are storage/pebblelog (on disk) and storage/memlog (tests and
// faults). storage/logtest is the one definition of what they do.
package storage
