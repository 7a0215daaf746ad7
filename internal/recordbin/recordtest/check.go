package recordtest

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/kcoord/kcoord/internal/recordbin"
)

// Answer is what a codec makes of a record.
type Answer struct {
	Name      string // of the message, as Kafka calls it
	Version   int16  // for keys the record type
	JSON      []byte
	Rewritten []byte // the record encoded again
	Tombstone bool
}

// Codec is a package under test.
type Codec struct {
	Key   func(b []byte) (Answer, error)
	Value func(key, b []byte) (Answer, error) // b is nil for a tombstone
}

// Check holds a codec to one fixture line.
func (c Codec) Check(t *testing.T, l *Line) {
	t.Helper()
	record, key := l.Bytes(t)
	read := func(b []byte) (Answer, error) {
		if l.Key == nil {
			return c.Key(b)
		}
		if _, err := c.Key(key); err != nil {
			return Answer{}, err
		}
		return c.Value(key, b)
	}
	got, err := read(record)
	outcome := Decoded
	switch {
	case errors.Is(err, recordbin.ErrUnknownType):
		outcome = Ignored
	case err != nil:
		outcome = Exception
	case got.Tombstone:
		outcome = Tombstone
	}
	want, wantJSON, rewrite := l.Want()
	if outcome != want {
		t.Errorf("%s v%d, %s: %s (%v), want %s\n%s", l.Type, l.Version, l.Note, outcome, err, want, l.Raw)
		return
	}
	if outcome != Decoded {
		return
	}
	if wantJSON != nil && !SameJSON(got.JSON, wantJSON) {
		t.Errorf("%s v%d, %s: reads as\n%s, want\n%s", l.Type, l.Version, l.Note, got.JSON, wantJSON)
	}
	if got.Version != l.Version {
		t.Errorf("%s v%d, %s: read as version %d", l.Type, l.Version, l.Note, got.Version)
	}
	if hex.EncodeToString(got.Rewritten) == rewrite {
		return
	}
	// Kafka refuses a later version and so has no rewrite to compare with, but kcoord normalises it as any other.
	again, err := read(got.Rewritten)
	if len(l.JSONAsHighest) == 0 || err != nil || !SameJSON(again.JSON, wantJSON) || len(got.Rewritten) >= len(record) {
		t.Errorf("%s v%d, %s: is written back as\n%x, want\n%s", l.Type, l.Version, l.Note, got.Rewritten, rewrite)
	}
}
