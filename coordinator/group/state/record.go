package state

import (
	"time"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/storage"
)

// Record is one record of a group as decisions write it and logs give it back.
// It holds offset commits, of which there are most, by value.
type Record struct {
	Kind  Kind
	Group string
	// Tombstone says that the record deletes its key.
	Tombstone bool
	// Txn is the transaction that the record is part of, or, of KindMarker, that it ends.
	Txn storage.Txn

	// Of KindOffset.
	Topic     string
	Partition int32
	Offset    Offset

	// Of KindGroup, unless a tombstone.
	Classic *Classic

	// Of KindMarker: its writer's.
	CoordinatorEpoch int32

	// Of KindOther, KindUnreadable and KindOrphan: the bytes, owned by the record. One of
	// another kind that has them (Codec.Exactly) is written as they are.
	Key, Value []byte
	// Of KindUnreadable: what is wrong, naming type, version and byte position.
	Problem error

	// LegacyKey says that the key is an OffsetCommitKey of version 0, which is another key
	// than that of version 1.
	LegacyKey bool
}

// Kind says which fields of a Record count.
type Kind uint8

const (
	KindOffset     Kind = iota // OffsetCommitKey and -Value
	KindGroup                  // GroupMetadataKey and -Value
	KindOther                  // any other known type (ConsumerGroup*, ShareGroup*, StreamsGroup*) or an unknown one: kept
	KindUnreadable             // a known key whose value does not parse
	KindOrphan                 // a key of no group: kept, and no part of the state
	KindMarker                 // a control record, which is of no group: the end of a transaction
)

// Offset is a committed offset (OffsetCommitValue).
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1: none
	Metadata    string
	Committed   time.Time
	Expires     time.Time // zero: as offsets.retention.minutes says (KIP-211)
	TopicID     [16]byte  // zero: committed by name
	// At is the offset of the record; 0 in records that are still to be applied.
	At storage.Offset
}

// Classic is a generation of a classic group as it was written (GroupMetadataValue).
// It is immutable once it is part of a Record.
type Classic struct {
	ProtocolType string
	Generation   int32
	Protocol     *string // nil: none chosen
	Leader       *string // nil: none
	// Since is when the group got into the state it was written in; zero: not known (values before v2).
	Since   time.Time
	Members []Member
	// Value is what was read, for the unknown tagged fields in it; nil in what is written anew.
	Value *groupmeta.GroupMetadataValue
}

// Member is a member of a written generation.
type Member struct {
	ID               string
	InstanceID       *string
	ClientID         string
	ClientHost       string
	RebalanceTimeout time.Duration
	SessionTimeout   time.Duration
	Subscription     []byte // metadata of the generation's protocol
	Assignment       []byte
}
