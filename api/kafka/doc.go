// Package kafka is the listener: Kafka's protocol over TCP, the coordinator's APIs
// answered here, everything else passed on to the broker behind.
//
// What holds, and why:
//
// Answers leave in the order of the requests. Each request becomes a call in the
// queue of its connection, and the connection's writer answers calls from the
// head of that queue alone, whoever completes them and when.
//
// Requests are decided in the order of the requests. The reader of a connection
// hands one call over after the other. The frequent ones (OffsetCommit,
// OffsetFetch, Heartbeat) it does not wait for: their shard takes them in the
// order in which they come, and only the wait for the disk overlaps. It does wait
// for all others, and above all for JoinGroup and SyncGroup, which may be parked:
// that is how Kafka, which takes one request of a connection at a time, behaves.
// A call of ours also waits until the broker has answered what was passed on
// before it.
//
// No connection waits for another. Each has its reader, its writer and, once it
// has passed something on, its own connection to the broker with a reader, so
// that neither needs a correlation id rewritten and one that does not read stops
// itself alone.
//
// Nothing is believed about a length before its bytes have come. Frames to be passed on are
// streamed; those for us are gathered in a buffer that grows with what arrived.
// A silent connection holds a few hundred bytes and one goroutine.
//
// What cannot be read ends its own connection, with a log line.
//
// Versions are met here and only here: requests are normalised to the shape of the
// newest version where they are decoded, responses are shaped where they are
// encoded. Errors of the coordinator become Kafka's codes in code, and nowhere else.
//
// A call's memory (its request and everything that hangs on it) belongs to the
// coordinator until it replies, and is used again afterwards; strings are never
// used again and may be kept.
package kafka
