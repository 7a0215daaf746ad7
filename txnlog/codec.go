package txnlog

import (
	"fmt"

	"github.com/kcoord/kcoord/internal/recordbin"
)

//go:generate go run ../internal/recordgen -schema records.schema -package txnlog

// What records are made of.
type (
	UnknownTags = recordbin.UnknownTags
	DecodeError = recordbin.DecodeError
	EncodeError = recordbin.EncodeError
)

// ErrUnknownType is wrapped by what DecodeKey returns for a record type that is not known. The record is to be skipped,
// counted and kept; every other error means that the bytes are damaged or from an incompatible version.
var ErrUnknownType = recordbin.ErrUnknownType

// Key is what DecodeKey returns: today always a *TransactionLogKey.
type Key = *TransactionLogKey

// Value is what DecodeValue returns: today always a *TransactionLogValue.
type Value = *TransactionLogValue

// DecodeKey reads a record's key. The error wraps [ErrUnknownType] or is a [*DecodeError].
func DecodeKey(b []byte) (Key, error) {
	prefix, err := recordbin.Prefix("txnlog", "key", b)
	if err != nil {
		return nil, err
	}
	k := newKey(Type(prefix))
	if k == nil {
		return nil, fmt.Errorf("txnlog: key: %w %d", ErrUnknownType, prefix)
	}
	if err := k.Decode(b); err != nil {
		return nil, err
	}
	return k, nil
}

// DecodeValue reads the value of a record with a key of type t, and returns the version it was written in, for
// AppendTo. A nil b is a tombstone: the value is nil, and so is the error. An empty b that is not nil is, as for Kafka,
// a damaged value.
//
// Only the bytes are judged: a transaction status that no transaction can be in is the state machine's to refuse.
func DecodeValue(t Type, b []byte) (v Value, version int16, err error) {
	if b == nil {
		return nil, -1, nil
	}
	if v = NewValue(t); v == nil {
		return nil, -1, fmt.Errorf("txnlog: value: %w %d", ErrUnknownType, int16(t))
	}
	if version, err = v.Decode(b); err != nil {
		return nil, version, err
	}
	return v, version, nil
}
