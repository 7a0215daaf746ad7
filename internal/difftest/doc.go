//go:build kafka

// Package difftest plays the same random sequences of requests to a real Kafka and to kcoord in front of it, and
// compares what they answer.
//
// A sequence is data: a list of ops that refer to members by the slot (a client) that got an id, and to generations by
// what the slot was told last. So it can be played to any coordinator, played again, and made shorter until each op that
// is left is needed for the difference. Slots behave like clients most of the time, so that groups get somewhere.
//
// What differs from run to run (member ids) is named by the op whose answer brought it. What no client may rely
// on (messages, throttle times) is left out, and lists are sorted. Where Kafka's answer depends on the order of a hash map
// (who leads after a leader has left) a sequence ends without a verdict.
//
// It is not part of `go test ./...`, since it needs a Kafka:
//
//	go test -tags kafka ./internal/difftest -kafka HOST:PORT -kcoord HOST:PORT -sequences 2000 [-weird]
//
// With -restart COMMAND kcoord is killed in the middle and Kafka is not: whatever outlives that must be as if nothing had
// been.
//
// Both have ../shared/conform's settings, but for
// offsets.retention.check.interval.ms=86400000: else empty groups vanish at moments of their own, and Kafka's with the
// ids that were given and not used yet. And kcoord must have
// offsets.topic.num.partitions=4, as that Kafka does, since transactions and markers name partitions. kcoord stands before a
// Kafka of its own, which has transaction.partition.verification.enable=false; the one that it is compared with must
// verify. With transaction.version=1 both Kafkas and kcoord must have it.
//
// -transactions leaves the members of groups out. What is produced goes to a topic that the sequence has for itself; at the end it is
// read, as who reads committed records sees it, and what the partitions know of producers is compared.
//
// TestStorms (-storms N) asks kcoord alone, and several things at once. TestLateRecords needs -pause 'kill -STOP PID; echo; sleep 0.3; kill -CONT PID' of the broker behind kcoord.
//
// A third of the sequences has short timeouts, and waits now and then until all that was to happen has happened. One that took
// too long in between ends without a verdict where the answers differ.
//
// While something is parked, the next op waits until both tell the same of who is in the groups, and the longer the slower they are: else it
// might overtake what is parked.
//
// A quarter has topics of its own, which are made, deleted, made anew and grown, through kcoord or, with -behind,
// past it. Groups apart from the sequence's bear witness of when what was committed to an earlier topic has gone. With
// -topics all do.
//
// A third sends several requests with one write, those of the broker's and what ends a connection among them: they are to be
// answered in their order, and what is behind a join that is parked with it. With -bursts all do.
//
// APIs that only Kafka serves (groups of KIP-848, shares, streams) are not asked for: there is nothing to compare.
//
// Known and left so: kcoord answers a join or a sync that its client has sent again, or whose member has left, where
// Kafka never does; a protocol that a join names twice counts once; a commit that is refused as a whole makes no
// group (in Kafka one of which no record tells: others are told of it, or not, by whether its partition got a record
// since); what makes Kafka fail with UNKNOWN_SERVER_ERROR (ids that grow too long, an empty group id in a join) is
// refused as what it is; a TxnOffsetCommit is always verified, where Kafka does not look at the transactional id once
// the partition has seen the producer; after an abort by the coordinator a commit is told that it is fenced; and a
// marker is written where Kafka, which keeps each producer's last epoch, refuses it. Kafka answers a TxnOffsetCommit
// or a Produce that it verifies in the words of the request with which it was verified together, which may have been one of
// another version.
//
// Of Produce: the broker behind kcoord, which verifies nothing, takes any sequence number from a producer that it knows nothing
// of (kcoord remembers only what it has refused itself, on that connection); a transactional id is always looked at, where
// Kafka does not once the partition has the transaction; a partition that has seen a later epoch than the
// producer's coordinator refuses records after they were added to the transaction, and not before; and with transaction.version 1
// Produce is served up to version 11.
//
// What is behind a join or a sync that Kafka never answers stays undone there, and kcoord goes on with it.
// A Produce with acks=0 that fails ends the connection, in kcoord when the broker has done so: requests behind it may
// be done until then. What is committed by name between the making of a topic anew past kcoord and kcoord's next look,
// within a second, counts as of the earlier topic and goes with that, as in Kafka while its metadata lags. And the
// offsets of a topic that is deleted while kcoord is down stay, though nobody who asks for the topic that has its
// name now is given them.
package difftest
