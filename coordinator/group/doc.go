// Package group decides for the groups of one shard: who may join, sync, beat,
// commit and leave, what each is answered, and which records say so.
//
// It is a machine.Machine: it never writes what records rebuild (package state)
// but by Apply, never asks for the time, and never waits. A request that cannot be
// answered yet is a token in the soft state of its group. The clocks of a group
// are values in one heap per shard.
//
// # Hard and soft
//
// The hard state of a classic group is the last generation that was written and its
// offsets. All else is soft and begins anew at Loaded: a group with members is
// Stable with fresh sessions, one without is Empty. That is safe because soft state
// moves in the step that emits the record for it, and the runner applies the records of a
// step at once and lets its replies out when they are durable: nobody outside has
// heard of soft state that a crash takes back, but for rebalances under way, whose
// members join again. There is no way back in here for a failed append: the whole
// machine is dropped.
//
// # In memory and known
//
// The directory holds an entry for every stored group and for every id in memory. An
// entry is in memory as a whole or not at all. Groups with members, with parked
// requests, with pending offsets or in quarantine stay; others may leave when all of their records are
// durable, for what is read back must be what was written. Ids without a group
// count as in memory, too, so that asking for them does not go to the disk each time.
//
// # Expiry
//
// Nothing is scanned. Each entry knows the earliest time at which something of it may
// expire (checkAt, never too late), and a sweep looks at those whose time has come,
// one at a time, loading them if need be. What changes the answer asks to be looked
// at: a commit, a rebalance's end, a deletion.
//
// # Transactions
//
// Offsets that are committed with a transaction are pending until its marker, which
// is about the shard: it concerns every group that has pending offsets of its producer, so all of
// those are in memory, from the opening of the shard on. Whether the transaction is open is its
// coordinator's to say, before the commit comes here; who sends a commit
// after it was verified, and a marker before that commit has come, must keep them in order.
//
// # Other than Kafka
//
//   - A group is not expired while someone was told to join it (a pending member).
//   - A static member that is replaced before it synced hands that on to its
//     successor; Kafka waits for the one before and rebalances once more.
//   - A request that its client sent twice is answered twice, alike; Kafka drops the
//     first. Who leaves, or is thrown out, while its sync is parked is answered
//     UNKNOWN_MEMBER_ID; Kafka never answers.
//   - A transactional commit that names no member is refused, unless the
//     settings allow it (Config.LegacyTxnCommit): also where the group is empty or missing, in
//     which Kafka accepts it, since a stale instance may well be the last one to write.
//   - A static member that is replaced without a rebalance is known by what its successor
//     subscribes to, as after a restart; Kafka goes on with the old one's topics until then.
//   - An empty group's first rebalance waits for one initial delay, and for more only if
//     members come; Kafka may still count one that came in the rebalance before.
//   - A protocol that a join names twice counts once; Kafka counts it twice, finds that not
//     every member knows it, and never ends the rebalance.
//   - A commit that is refused as a whole makes no group; Kafka has one until it is looked at for
//     what has expired, or its coordinator moves.
//   - A retention time so long that now and it overflow is forever; Kafka's is over at once.
//   - A commit or a marker of an epoch before the pending one's is refused
//     (INVALID_PRODUCER_EPOCH), by what is pending alone; Kafka's log remembers longer.
//   - No tombstone is written for a group that has no record of its own.
//   - Where Kafka takes the first of a hash map keyed by random member ids (the next
//     leader), the lowest id is taken.
//   - A group of a protocol that is not served yet is listed and keeps its offsets,
//     which can be fetched, committed and deleted; it is not described (GROUP_ID_NOT_FOUND,
//     as in Kafka), nor deleted (GROUP_ID_NOT_FOUND: whether it has members is not known).
//   - A group with a record that cannot be read is in quarantine: everything about it
//     is answered COORDINATOR_LOAD_IN_PROGRESS, nothing of it is written, and List
//     says that its state is Unknown.
package group
