package storage

import (
	"errors"
	"time"
)

// ShardID is a partition of __consumer_offsets (or __transaction_state): 0 … N-1.
type ShardID int32

// Offset is a record's place in its shard's log, from 0.
type Offset int64

// Record is one record in Kafka's own bytes. A nil Value is a tombstone.
type Record struct {
	Key, Value []byte
	// Time is the record's timestamp, in the log with the precision of a millisecond.
	Time time.Time
	// Txn is the transaction that the record belongs to, if any.
	Txn Txn
}

// Class splits the records of an entity by when they are read: headers when
// their shard is opened, bodies when the entity is first touched.
type Class uint8

const (
	Header Class = iota // few and small: says that the entity exists and what needs a timer
	Body                // as many as there are: committed offsets
	Orphan              // belongs to no entity: unknown record types, kept for their readers to come
)

// Index files a record's key: the entity (group or transactional id) whose
// state it is part of, and its class. Shards may hold different kinds of keys. It must be a
// pure function, and may be called by several goroutines. The entity may alias
// the key; an Orphan's is ignored. It is never asked about control records.
type Index func(shard ShardID, key []byte) (entity []byte, class Class)

// Errors that callers tell apart.
var (
	// ErrLocked says that another process has the folder open.
	ErrLocked = errors.New("storage: the folder is in use by another process")
	// ErrFormat says that the folder was written in a format which this build does not know.
	ErrFormat = errors.New("storage: unknown on-disk format")
	// ErrClosed says that the backend is closed or the log was reopened since.
	ErrClosed = errors.New("storage: closed")
	// ErrCorrupt says that stored bytes are not what was written.
	ErrCorrupt = errors.New("storage: corrupt")
)

// Backend holds the logs of all shards of one coordinator.
type Backend interface {
	// Open opens a shard's log. durable is called, in order, never while Append
	// runs on the caller's stack and from one goroutine at a time, each time that
	// more of it is on disk: end is the offset after the last durable record. It
	// must not block, since all shards' callbacks share a goroutine, and must not
	// call the backend. It is called with an error when an append failed: whether
	// its records were written is then unknown, the log takes no more and must be
	// opened again.
	//
	// Opening a shard that is open fences the earlier Log: its methods return
	// ErrClosed, and once Open has returned its durable is called no more. What
	// it had appended is below the new Log's End and durable.
	Open(shard ShardID, durable func(end Offset, err error)) (Log, error)
	// Close makes what was appended durable and says so, then closes.
	Close() error
}

// Log is the log of one shard. Its methods are not for concurrent use, but for
// Read, and they don't wait for the disk's sync.
type Log interface {
	// End is the offset that the next appended record will have.
	End() Offset
	// Append adds records as one atomic step: after a crash all of them are
	// there or none. The log keeps no reference to recs or their bytes.
	Append(recs []Record) error
	// Load visits the latest durable record of each key of an entity, headers
	// first, by key, then its pending records by offset; tombstones are left out. A
	// record that was committed in a transaction is a plain one here. What is
	// appended and not yet durable is not seen: a caller that drops an entity from
	// memory must know first that its records are durable. The record's bytes are
	// valid only during visit.
	Load(entity []byte, visit func(Offset, Record) error) error
	// Entities visits every entity that has a durable record which is not a
	// tombstone, in byte order, with its header records, by key, and whether it has
	// pending ones. The bytes are valid only during visit.
	Entities(visit func(entity []byte, headers []Located, pending bool) error) error
	// Read visits the durable records from an offset on, in offset order, control
	// records too, without those that compaction has removed. It sees one moment of
	// the log, however long it takes. The bytes are valid only during visit.
	//
	// In Load, Entities and Read an error of visit ends the visit and is returned as it is.
	Read(from Offset, visit func(Offset, Record) error) error
}

// Located is a record and its offset.
type Located struct {
	Offset Offset
	Record
}
