// Package memlog keeps logs in memory, for tests: of the shard runner, and of
// what stands above it. It means exactly what storage/logtest says, as the
// backend on disk does.
//
// It is also where faults come from. Hold keeps appended steps from becoming
// durable and Release lets so many of them through, so a test sees what is
// answered too early. FailNext fails an append, with its records written or
// not, since a caller must cope with both. Crash drops what is not durable. And
// the bytes that a visit was shown are overwritten after it, so that who keeps
// them finds out in a test.
//
// A Backend from New pumps by itself, with one goroutine that ends with Close
// or Crash. One from NewManual does nothing until Sync is called, and then calls
// the durable callbacks on the stack of Sync: a test with it is deterministic.
package memlog
