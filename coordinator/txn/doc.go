// Package txn decides for the transactional ids of one shard: who is their
// producer, what is part of its transaction, and how that ends.
//
// It is a machine.Machine: it never writes what records rebuild (package state)
// but by Apply, never asks for the time, and never waits. Nothing is parked: every
// request is answered by its own step, if only to be asked again.
//
// # What holds
//
// A producer id and epoch are given to one producer. An epoch only grows, an id
// that was given up does not come back, and epoch 32767 is left for fencing the
// producer in 32766. So whatever the holder of an earlier one still sends is told
// apart: by the id (INVALID_PRODUCER_ID_MAPPING) or by the epoch (PRODUCER_FENCED).
// Two askers get one answer only where they must be one producer: who asks
// again with the epoch it had, which nobody was given a later one over its head.
//
// A transaction that is decided (Prepare*) is carried through. Its markers are an
// effect that Loaded emits again until MarkersDone says that they are written,
// and until then nothing else begins under its id: CONCURRENT_TRANSACTIONS. The
// time of the decision names it, so that what is reported late of one transaction is
// never taken for the next.
//
// # Kafka's order
//
// The order of the checks is that of Apache Kafka 4.4.0, asked where its source left
// doubts: an EndTxn of transaction version 2 and the adding of partitions are told to
// wait before their epoch is looked at (KAFKA-18464), an EndTxn of version 1 after.
package txn
