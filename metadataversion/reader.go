package metadataversion

import (
	"errors"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/txnlog"
)

// Log says which of the two logs a record is of: their type numbers overlap.
type Log uint8

// The logs.
const (
	GroupLog        Log = iota // __consumer_offsets
	TransactionsLog            // __transaction_state
)

// String is the topic.
func (l Log) String() string {
	return [...]string{"__consumer_offsets", "__transaction_state"}[l]
}

// Outcome is what a reader makes of a record, from harmless to worst.
type Outcome uint8

// Outcomes.
const (
	Read             Outcome = iota
	Skipped                  // left out with a warning
	Misread                  // taken for another layout without a check
	Quarantined              // kcoord: retriable errors for its group alone
	PartialPartition         // loading ends there: what follows is missing, and the partition is served
	EmptyPartition           // loading fails and the partition is served as if it were empty
	FailedPartition          // loading fails and the partition is not served
)

// String is a word for it.
func (o Outcome) String() string {
	return [...]string{"read", "skipped", "misread", "quarantined", "partition partial", "partition empty", "partition not served"}[o]
}

// Reader is how a release of Kafka, or kcoord, reads the two logs. behaviour.md §4 and the fixtures are where it is from.
type Reader struct {
	highest  [records]int16 // values, by record; None: the types are not known
	fields   Fields         // tagged fields that it knows
	frozen   bool           // values under key type 0 are version 0 and nothing else
	strictly bool           // an unknown version that the highest layout does not account for is an error (kcoord)

	unknownType    [2]Outcome // by log
	unknownVersion [2]Outcome
	damaged        [2]Outcome
}

// ReaderOf is how a release reads: up to 3.9 its Scala coordinators, which all of them had by default.
func ReaderOf(r Release) Reader {
	s := &states[r.last]
	reader := Reader{
		highest: s.reads, fields: s.fields, frozen: r.last >= V4_0_IV0,
		damaged:        [2]Outcome{EmptyPartition, PartialPartition},
		unknownVersion: [2]Outcome{EmptyPartition, PartialPartition},
		unknownType:    [2]Outcome{EmptyPartition, PartialPartition},
	}
	if r.Tolerates() {
		reader.highest[OffsetCommit], reader.highest[GroupMetadata], reader.highest[TransactionLog] = 4, 4, 1
		reader.unknownType = [2]Outcome{Skipped, Skipped}
	}
	if r.last >= V4_0_IV0 {
		reader.damaged[GroupLog], reader.unknownVersion = FailedPartition, [2]Outcome{FailedPartition, Skipped}
	}
	return reader
}

// Ours is how kcoord reads.
func Ours() Reader {
	s := &states[Latest]
	r := Reader{highest: s.reads, fields: allFields, frozen: true, strictly: true}
	r.highest[GroupMetadata] = groupmeta.TypeGroupMetadata.HighestVersion()
	r.unknownType = [2]Outcome{Skipped, Skipped}
	r.unknownVersion = [2]Outcome{Quarantined, Quarantined}
	r.damaged = r.unknownVersion
	return r
}

// Knows says whether the reader knows a record type of the group log.
func (r *Reader) Knows(t groupmeta.Type) bool {
	f := familyOf(t)
	return f < records && r.highest[f] != None
}

// Read says what the reader makes of a record; a nil value is a tombstone.
func (r *Reader) Read(log Log, key, value []byte) Outcome {
	if log == TransactionsLog {
		return r.readTransaction(key, value)
	}
	t, err := groupmeta.TypeOfKey(key)
	switch {
	case err != nil:
		return r.damaged[log]
	case !r.Knows(t):
		return r.unknownType[log]
	}
	if _, err := groupmeta.DecodeKey(key); err != nil {
		return r.damaged[log]
	}
	if value == nil {
		return Read
	}
	if t == groupmeta.TypeLegacyOffsetCommit && !r.frozen {
		t = groupmeta.TypeOffsetCommit // one schema for both
	}
	highest := r.highest[familyOf(t)]
	if t == groupmeta.TypeLegacyOffsetCommit {
		highest = 0
	}
	_, version, err := groupmeta.DecodeValue(t, value)
	return r.valueRead(log, version, highest, len(value), err)
}

func (r *Reader) readTransaction(key, value []byte) Outcome {
	k, err := txnlog.DecodeKey(key)
	switch {
	case errors.Is(err, txnlog.ErrUnknownType), err == nil && r.highest[TransactionLog] == None:
		return r.unknownType[TransactionsLog]
	case err != nil:
		return r.damaged[TransactionsLog]
	case value == nil:
		return Read
	}
	v, version, err := txnlog.DecodeValue(k.Type(), value)
	if err == nil && !r.strictly {
		err = impossible(v, r.fields)
	}
	return r.valueRead(TransactionsLog, version, r.highest[TransactionLog], len(value), err)
}

func (r *Reader) valueRead(log Log, version, highest int16, size int, err error) Outcome {
	unknown := size >= 2 && recordbin.Nearest(version, highest) != version
	switch {
	case unknown && r.strictly && err == nil: // KIP-915: every byte accounted for
		return Read
	case unknown && r.unknownVersion[log] == Misread && err != nil:
		return r.damaged[log]
	case unknown:
		return r.unknownVersion[log]
	case err != nil:
		return r.damaged[log]
	}
	return Read
}

// Statuses that Kafka's transaction log knows, and the highest transaction version of a client.
const (
	statusEmpty   = 0
	highestStatus = 7
	highestClient = 2
)

var (
	errStatus     = errors.New("txnlog: TransactionLogValue: transactionStatus is none that Kafka knows")
	errPartitions = errors.New("txnlog: TransactionLogValue: transactionPartitions is null outside the state Empty")
	errClient     = errors.New("txnlog: TransactionLogValue: clientTransactionVersion is none that Kafka knows")
)

// impossible is what Kafka's coordinators throw for beyond the bytes.
func impossible(v txnlog.Value, known Fields) error {
	switch {
	case v.TransactionStatus < 0 || v.TransactionStatus > highestStatus:
		return errStatus
	case v.TransactionPartitionsNull && v.TransactionStatus != statusEmpty:
		return errPartitions
	case known&ClientTransactionVersion != 0 && (v.ClientTransactionVersion < 0 || v.ClientTransactionVersion > highestClient):
		return errClient
	}
	return nil
}
