// Package pebblelog keeps the logs of all shards in one pebble database, and
// beside them the key table: the latest record of each key.
//
// # What must hold
//
// An end that a durable callback was told is on disk, and a step is there whole
// or not at all. Every other property is a consequence of how this one is kept:
//
//   - What a shard appended since the last commit is its set: one Kafka record
//     batch (rarely a few), encoded as it is appended. A commit is one pebble
//     batch with the sets of all shards, so no step is ever torn.
//   - One goroutine commits: takes the sets, applies, waits for the sync, hands
//     the ends to the notifier, and begins again. What is appended while it waits
//     is the next commit, so there is no linger and no timer, and the callbacks run
//     while the next sync does.
//   - pebble shows a batch before it is synced. So nothing in here believes what
//     it can read but what lies below shard.durable, which moves after the sync.
//
// The key table follows the log. A fold reads what is durable and not yet
// folded, and writes the newest row of each key together with the position it
// has reached as one pebble batch, which also takes the batches out of the log that
// the fold itself has found superseded whole. Nobody waits for its sync: pebble's WAL is one
// sequence, of which a crash leaves a prefix, so whatever is there of the key
// table is there of the log before it. The same goes for cleaning, which removes
// only what lies below the fold and what no row shows. A crash may undo a fold or
// a cleaning; both are then done again.
//
// Load and Entities look at the key table alone. They may, because they fold
// first when the tail (durable, not folded) has what they ask for: shard.unfolded
// names the entities in the tail, one map entry each. The tail is bounded in
// bytes, and so is what opening a shard after a crash must fold.
//
// What a step writes that its entity's next step writes anew, the same keys and no others, is superseded
// whole, and unfolded knows that without the fold: it takes such batches out of the log and reads the others.
// That its later steps may be beyond the chunk does not matter: they are durable, and whoever asks folds them first.
//
// # Transactions
//
// In the log the records of a transaction are batches of their own, as Kafka has
// them, and so is each control record. The key table holds pending records apart
// from the latest ones, and a fold, which goes in the log's order, resolves them:
// mostly within its chunk, so that they never are rows at all. A row that came to be by
// a commit remembers the control record, which cleaning then keeps as long as the
// row. A control record in the tail may concern any entity that has pending rows,
// so Load of such a one folds first, too.
//
// # Who owns what
//
// The committer owns the pebble batch and the shard's spare set; it swaps sets
// under shard.mu. The notifier alone calls durable. shard.folding guards the fold
// position, the pending records and every write to the key table, shard.cleaning the log below the
// fold; cleaning comes first. Neither shard.mu nor Backend.mu is ever held while
// pebble is called: pebble reports failures with locks of its own held, and
// Backend.fail takes ours.
//
// # Failure
//
// After a failed write or sync nobody knows what is on disk, and a second try
// that works proves nothing (the kernel may have dropped the pages). So there is
// no second try: watchFS sees the first failure, before pebble does, and
// Options.Fatal ends the process. Should it return, which is for tests, no
// durable reports success any more.
package pebblelog
