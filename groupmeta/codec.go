package groupmeta

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/kcoord/kcoord/internal/recordbin"
)

//go:generate go run ../internal/recordgen -schema records.schema -package groupmeta -owner GroupID

// What records are made of. The aliases are for packages that hold such values; the text of both is Kafka's.
type (
	NullString  = recordbin.NullString
	UUID        = recordbin.UUID
	UnknownTags = recordbin.UnknownTags
	DecodeError = recordbin.DecodeError
	EncodeError = recordbin.EncodeError
)

// Some is a nullable string that is there, be it empty.
func Some(s string) NullString { return recordbin.Some(s) }

// FromPtr is a nullable string as package kmsg has it; NullString.Ptr is the way back.
func FromPtr(s *string) NullString { return recordbin.FromPtr(s) }

// ErrUnknownType is wrapped by what DecodeKey and GroupOfKey return for a record type that is not known. The record is
// to be skipped, counted and kept; every other error means that the bytes are damaged or from an incompatible version.
var ErrUnknownType = recordbin.ErrUnknownType

// ErrUnknownVersion is wrapped by errors for a version of a frozen record type.
var ErrUnknownVersion = recordbin.ErrUnknownVersion

// Key is a pointer to one of the generated key structs.
type Key interface {
	Type() Type
	// GroupID is the group that the record belongs to.
	GroupID() string
	// AppendTo appends the key's bytes, prefix included.
	AppendTo(dst []byte) ([]byte, error)
	// Decode reads the whole key, prefix included.
	Decode(b []byte) error
	AppendJSON(dst []byte) []byte
}

// Value is a pointer to one of the generated value structs. A value does not know its version: that comes out of Decode
// and goes into AppendTo.
type Value interface {
	Type() Type
	// AppendTo appends the value's bytes, prefix included, in the version given.
	AppendTo(dst []byte, version int16) ([]byte, error)
	// Decode reads the whole value, prefix included, and returns the version it was written in.
	Decode(b []byte) (version int16, err error)
	AppendJSON(dst []byte, version int16) []byte
}

// DecodeKey reads any record's key. The error wraps [ErrUnknownType] or is a [*DecodeError].
//
// Where the type is known beforehand, the struct's own Decode saves the allocation of the struct.
func DecodeKey(b []byte) (Key, error) {
	prefix, err := recordbin.Prefix("groupmeta", "key", b)
	if err != nil {
		return nil, err
	}
	k := newKey(Type(prefix))
	if k == nil {
		return nil, fmt.Errorf("groupmeta: key: %w %d", ErrUnknownType, prefix)
	}
	if err := k.Decode(b); err != nil {
		return nil, err
	}
	return k, nil
}

// DecodeValue reads the value of a record with a key of type t, and returns the version it was written in, for
// AppendTo. A nil b is a tombstone: the value is nil, and so is the error. An empty b that is not nil is, as for Kafka,
// a damaged value: who stores records must keep the two apart.
//
// The error wraps [ErrUnknownType] or [ErrUnknownVersion] or is a [*DecodeError].
func DecodeValue(t Type, b []byte) (v Value, version int16, err error) {
	if b == nil {
		return nil, -1, nil
	}
	if v = NewValue(t); v == nil {
		return nil, -1, fmt.Errorf("groupmeta: value: %w %d", ErrUnknownType, int16(t))
	}
	if version, err = v.Decode(b); err != nil {
		return nil, version, err
	}
	return v, version, nil
}

// TypeOfKey is the record type of any key of at least two bytes, known here or not.
func TypeOfKey(b []byte) (Type, error) {
	prefix, err := recordbin.Prefix("groupmeta", "key", b)
	return Type(prefix), err
}

// GroupOfKey reads the type and the group of any known key without the rest, and without allocating: group shares b's
// memory. Nothing after the group is checked. The error wraps [ErrUnknownType], in which case t is still the type, or
// is a [*DecodeError].
func GroupOfKey(b []byte) (group []byte, t Type, err error) {
	if group, t, ok := groupOfOffset(b); ok {
		return group, t, nil
	}
	prefix, err := recordbin.Prefix("groupmeta", "key", b)
	if err != nil {
		return nil, 0, err
	}
	t = Type(prefix)
	name := t.KeyName()
	if name == "" {
		return nil, t, fmt.Errorf("groupmeta: key: %w %d", ErrUnknownType, prefix)
	}
	r := recordbin.NewReader(b, false, false) // every key's first field is its group; a test holds that
	group = r.Text("group")
	return group, t, r.Err("groupmeta", name, prefix)
}

// groupOfOffset is the short way of GroupOfKey for what a log holds most of: sound keys of committed offsets.
func groupOfOffset(b []byte) (group []byte, t Type, ok bool) {
	const at = 4 // after the type and the group's length
	if len(b) < at || Type(binary.BigEndian.Uint16(b)) != TypeOffsetCommit {
		return nil, 0, false
	}
	n := int(int16(binary.BigEndian.Uint16(b[2:])))
	if n < 0 || at+n > len(b) || !utf8.Valid(b[at:at+n]) {
		return nil, 0, false
	}
	return b[at : at+n], TypeOffsetCommit, true
}
