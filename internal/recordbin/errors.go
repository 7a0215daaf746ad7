package recordbin

import (
	"errors"
	"fmt"
)

// ErrUnknownType is wrapped by the error for a key whose record type is not in the schema. Such a record is to be
// skipped, counted and kept (KIP-915), not taken for damage.
var ErrUnknownType = errors.New("unknown record type")

// ErrUnknownVersion is wrapped by the error for a version that a record type cannot be read or written in.
var ErrUnknownVersion = errors.New("unknown version")

// DecodeError says where in a record's bytes reading stopped, and why.
type DecodeError struct {
	Package string // the codec's package, first word of the message
	Record  string // for example OffsetCommitValue
	Version int16  // as stored; for keys the record type
	Offset  int    // in bytes from the record's first, which belongs to the two-byte prefix
	Field   string // path in Kafka's names, for example members[2].clientId; empty for the record as a whole
	Problem string

	noVersion bool
}

func (e *DecodeError) Error() string {
	at := e.Package + ": " + e.Record
	if !e.noVersion {
		at += fmt.Sprintf(" v%d", e.Version)
	}
	at += fmt.Sprintf(": byte %d: ", e.Offset)
	if e.Field != "" {
		at += e.Field + ": "
	}
	return at + e.Problem
}

// EncodeError says which field cannot be written, and why: too long for its length prefix, or not in that version.
type EncodeError struct {
	Package string
	Record  string
	Version int16
	Field   string
	Problem string
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("%s: cannot write %s v%d: %s: %s", e.Package, e.Record, e.Version, e.Field, e.Problem)
}

// Prefix reads the two bytes that every key (record type) and every value (version) starts with.
func Prefix(pkg, record string, b []byte) (int16, error) {
	if len(b) < 2 {
		return 0, &DecodeError{Package: pkg, Record: record, Field: "prefix", noVersion: true,
			Problem: fmt.Sprintf("needs 2 bytes, has %d", len(b))}
	}
	return int16(b[0])<<8 | int16(b[1]), nil
}
