package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/txnlog"
)

// highestVersion is the highest transaction version that there is.
const highestVersion = 2

// longest is the longest id or topic that a record can hold.
const longest = math.MaxInt16

// Writable says whether a record can hold a name. Kafka's protocol knows none that
// is longer; its flexible versions could carry them.
func Writable(name string) bool { return len(name) <= longest }

// Codec turns records into Kafka's bytes and back. Each shard has its own.
type Codec struct {
	// Versions are those that records are written in; zero: the latest. They may change
	// between two steps of the shard, and not within one.
	Versions metadataversion.RecordVersions
	// Unreadable is told of every record that could not be read. It must not
	// block. key is the record's own.
	Unreadable func(id string, key []byte, problem error)
}

// Index files a key under its transactional id. What has none that could be read is an orphan.
func Index(_ storage.ShardID, key []byte) (entity []byte, class storage.Class) {
	k, err := txnlog.DecodeKey(key)
	if err != nil {
		return nil, storage.Orphan
	}
	return []byte(k.TransactionalID), storage.Header
}

// Append appends a record's key and value. Decisions never make a record that
// cannot be written.
func (c *Codec) Append(key, value []byte, r *Record) (k, v []byte, tombstone bool) {
	if r.Kind != KindTxn || r.Key != nil { // bytes that are written as they are
		return append(key, r.Key...), append(value, r.Value...), r.Tombstone
	}
	k, err := (&txnlog.TransactionLogKey{TransactionalID: r.ID}).AppendTo(key)
	v = value
	if err == nil && !r.Tombstone {
		v, err = r.Txn.value().AppendTo(value, c.version())
	}
	if err != nil {
		panic(fmt.Sprintf("transactional id %q: a record that cannot be written: %v", r.ID, err))
	}
	return k, v, r.Tombstone
}

func (t *Txn) value() *txnlog.TransactionLogValue {
	v := &txnlog.TransactionLogValue{
		ProducerID:                       int64(t.Producer.ID),
		PreviousProducerID:               int64(t.Previous),
		NextProducerID:                   int64(t.Next),
		ProducerEpoch:                    int16(t.Producer.Epoch),
		NextProducerEpoch:                int16(t.NextEpoch),
		TransactionTimeoutMs:             int32(t.Timeout.Milliseconds()),
		TransactionStatus:                int8(t.Status),
		TransactionPartitionsNull:        t.Status == Empty, // as Kafka has it
		TransactionLastUpdateTimestampMs: recordbin.Millis(t.Updated),
		TransactionStartTimestampMs:      recordbin.Millis(t.Started),
		ClientTransactionVersion:         t.Version,
		UnknownTags:                      t.Tags,
	}
	for _, topic := range t.Topics {
		v.TransactionPartitions = append(v.TransactionPartitions, txnlog.PartitionsSchema{Topic: topic.Name, PartitionIds: topic.Partitions})
	}
	return v
}

// Txn is nothing: Kafka's transaction log holds no transactions itself.
func (c *Codec) Txn(*Record) storage.Txn { return storage.Txn{} }

// Decode reads a record; it keeps no reference to the bytes. What is wrong with
// a value puts the record's id into quarantine when applied.
func (c *Codec) Decode(rec storage.Record) Record {
	key, value := rec.Key, rec.Value
	k, err := txnlog.DecodeKey(key)
	if err != nil { // an orphan, which no entity's loading brings
		return Record{Kind: KindOther, Tombstone: value == nil, Key: slices.Clone(key), Value: slices.Clone(value)}
	}
	r := Record{Kind: KindTxn, ID: k.TransactionalID, Tombstone: value == nil}
	if value == nil {
		return r
	}
	if r.Txn, err = decode(value); err == nil {
		return r
	}
	if c.Unreadable != nil {
		c.Unreadable(r.ID, slices.Clone(key), err)
	}
	return Record{Kind: KindUnreadable, ID: r.ID, Key: slices.Clone(key), Value: slices.Clone(value), Problem: err}
}

// Exactly reads a record that is to be written as the bytes are.
func (c *Codec) Exactly(key, value []byte) Record {
	r := c.Decode(storage.Record{Key: key, Value: value})
	r.Key, r.Value = slices.Clone(key), slices.Clone(value)
	return r
}

// decode reads a value, and refuses what cannot be acted on: a state that is never written (Kafka
// takes Dead and PrepareEpochFence, and fails when they are used), a transaction whose partitions
// are not known, and a transaction version that is not.
func decode(value []byte) (*Txn, error) {
	v := txnlog.NewTransactionLogValue()
	if _, err := v.Decode(value); err != nil {
		return nil, err
	}
	s := Status(v.TransactionStatus)
	switch {
	case v.TransactionStatus < 0 || !s.Written():
		return nil, fmt.Errorf("state: transaction status %d (written by a later version?)", v.TransactionStatus)
	case v.TransactionPartitionsNull && s != Empty:
		return nil, errors.New("state: partitions are null in a transaction that is " + s.String())
	case v.ClientTransactionVersion < 0 || v.ClientTransactionVersion > highestVersion:
		return nil, fmt.Errorf("state: transaction version %d (written by a later version?)", v.ClientTransactionVersion)
	}
	t := &Txn{
		Status:    s,
		Producer:  Producer{ProducerID(v.ProducerID), Epoch(v.ProducerEpoch)},
		Previous:  ProducerID(v.PreviousProducerID),
		Next:      ProducerID(v.NextProducerID),
		NextEpoch: Epoch(v.NextProducerEpoch),
		Timeout:   time.Duration(v.TransactionTimeoutMs) * time.Millisecond,
		Started:   recordbin.Instant(v.TransactionStartTimestampMs),
		Updated:   recordbin.Instant(v.TransactionLastUpdateTimestampMs),
		Version:   v.ClientTransactionVersion,
		Tags:      v.UnknownTags,
	}
	if s != Empty { // Kafka does not look at them in Empty, either
		topics := make([]Topic, len(v.TransactionPartitions))
		for i, p := range v.TransactionPartitions {
			topics[i] = Topic{p.Topic, p.PartitionIds}
		}
		t.Topics = TopicsOf(topics...)
	}
	return t, nil
}
