package storage

// Keeper is what a Backend can do with what it holds as a whole, while its logs are in
// use: it is how records are found that are to be rewritten, and how the old ones go.
type Keeper interface {
	// Latest visits the latest durable record of every key of a shard, of orphans and
	// tombstones too, and after them all pending ones. A record that was committed in a
	// transaction is a plain one here. It sees one moment. The bytes are valid only
	// during visit, whose error ends the visit and is returned as it is.
	Latest(shard ShardID, visit func(Offset, Record) error) error
	// Purge removes from a shard's log the durable records that Latest does not show,
	// and the tombstones of keys that forget is true of; control records stay as long as
	// a record counts by them. A crash may undo it until something that was appended
	// afterwards, to whichever shard, is durable.
	Purge(shard ShardID, forget func(key []byte) bool) error
}
