package storage

import (
	"encoding/binary"
	"fmt"
)

// Txn says whose transaction a record belongs to. The zero value: nobody's.
//
// A pending record is in the log and does not count: the table of latest
// records shows it beside its key's, not instead. The next control record of its
// producer in the shard decides, whatever the epochs are: by a commit it
// becomes its key's record, unless a later one is; by an abort it is gone. A producer's pending record
// supersedes its earlier one of the same key. A tombstone counts at once, also
// one in a transaction, and ends what is pending of its key, of every producer. All
// this is what Kafka's coordinator does.
type Txn struct {
	Producer int64
	Epoch    int16
	Kind     TxnKind
}

// TxnKind is a record's part in a transaction.
type TxnKind uint8

const (
	Plain   TxnKind = iota // none
	Pending                // counts from its producer's commit on
	Commit                 // control record
	Abort                  // control record
)

// Control says that the record is a control record: its key and value are
// AppendControl's, and it belongs to no entity.
func (k TxnKind) Control() bool { return k >= Commit }

// Kafka's types of control records; their keys are a version, which is 0, and the type.
const (
	controlAbort  = 0
	controlCommit = 1
)

// AppendControl appends a control record's key and value, of Commit or Abort,
// in Kafka's bytes (EndTxnMarker version 0).
func AppendControl(key, value []byte, kind TxnKind, coordinatorEpoch int32) (k, v []byte) {
	t := uint16(controlAbort)
	if kind == Commit {
		t = controlCommit
	}
	k = binary.BigEndian.AppendUint16(append(key, 0, 0), t)
	v = binary.BigEndian.AppendUint32(append(value, 0, 0), uint32(coordinatorEpoch))
	return k, v
}

// ControlKind reads a control record's key. It fails for the types that have no
// place in a coordinator's log.
func ControlKind(key []byte) (TxnKind, error) {
	if len(key) >= 4 {
		switch t := binary.BigEndian.Uint16(key[2:]); t {
		case controlCommit:
			return Commit, nil
		case controlAbort:
			return Abort, nil
		}
	}
	return Plain, fmt.Errorf("%w: key %x of a control record", ErrCorrupt, key)
}

// CoordinatorEpoch reads a control record's value. It is -1 if there is none.
func CoordinatorEpoch(value []byte) int32 {
	if len(value) < 6 {
		return -1
	}
	return int32(binary.BigEndian.Uint32(value[2:]))
}
