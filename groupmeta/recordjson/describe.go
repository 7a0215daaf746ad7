// Package recordjson shows stored records as JSON, one line in and one line out, for `kcoord record decode` and for
// whoever compares kcoord's reading of a record with Kafka's.
//
// The answer is what the coordinator itself sees: it goes through the same decoders, and the bytes shown are those that
// it would write. Every input line has an answer; none can end the process.
package recordjson

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/txnlog"
)

// line is what is asked about. Fields that are not named here are ignored, so that the lines of Kafka's fixtures can be
// passed as they are.
type line struct {
	Type string  `json:"type"` // Kafka's message name; says which log, and the rest where there is no key
	Hex  *string `json:"hex"`  // the record's key or value with its prefix; null in a tombstone
	Key  *string `json:"key"`  // for a value, the key it was stored under
}

// described is a record that could be read.
type described struct {
	name    string
	version int16 // for keys the record type
	json    []byte
	bytes   []byte
}

var (
	errTombstone = errors.New("tombstone")
	errNoKey     = errors.New("a value without its key, and the type does not name a known record")
)

// log is one of Kafka's two internal topics.
type log struct {
	key   func(b []byte) (described, error)
	value func(key, b []byte) (described, error)
	named func(valueName string) (key []byte, ok bool) // the head of a key for values of that name
}

// DescribeLine answers one line of JSON {"type","hex","key"} with one line, without a newline:
//
//	{"type":…,"version":…,"json":…,"hex":…}      read; hex is how kcoord writes it back
//	{"ignored":true,"type":…,"version":…}        a record type that is not known
//	{"tombstone":true,"type":…,"version":-1}     a null value
//	{"error":…}                                  everything else
func DescribeLine(in []byte) []byte {
	var l line
	if err := json.Unmarshal(in, &l); err != nil {
		return describeError(fmt.Errorf("not a line of JSON: %w", err))
	}
	var d described
	var err error
	for _, lg := range logsFor(l.Type) {
		if d, err = lg.describe(l); err == nil || errors.Is(err, errTombstone) {
			break
		}
	}
	switch {
	case errors.Is(err, errTombstone):
		return head(`{"tombstone":true,"type":`, l.Type, -1, "}")
	case errors.Is(err, recordbin.ErrUnknownType):
		return head(`{"ignored":true,"type":`, l.Type, d.version, "}")
	case err != nil:
		return describeError(err)
	}
	name := d.name
	if strings.TrimPrefix(l.Type, "Legacy") == strings.TrimPrefix(name, "Legacy") {
		name = l.Type // values under key type 0 go by either name
	}
	out := append(head(`{"type":`, name, d.version, `,"json":`), d.json...)
	out = append(out, `,"hex":"`...)
	return append(hex.AppendEncode(out, d.bytes), `"}`...)
}

// logsFor is the log that a type's name belongs to. A tombstone's does not say, so both are tried.
func logsFor(name string) []log {
	switch {
	case strings.Contains(name, "TransactionLog"):
		return []log{transactionLog}
	case name == "Tombstone":
		return []log{groupLog, transactionLog}
	}
	return []log{groupLog}
}

func (lg log) describe(l line) (described, error) {
	if l.Key == nil && !strings.HasSuffix(l.Type, "Value") {
		b, err := unhex("hex", l.Hex)
		if err != nil {
			return described{}, err
		}
		return lg.key(b)
	}
	key, err := lg.keyOf(l)
	if err != nil {
		return described{version: prefixOf(key)}, err
	}
	if l.Hex == nil {
		return described{}, errTombstone
	}
	b, err := unhex("hex", l.Hex)
	if err != nil {
		return described{}, err
	}
	return lg.value(key, b)
}

// keyOf reads the key as Kafka does before it looks at the value; without one the type's name stands in.
func (lg log) keyOf(l line) ([]byte, error) {
	if l.Key == nil {
		key, ok := lg.named(l.Type)
		if !ok {
			return nil, errNoKey
		}
		return key, nil
	}
	key, err := unhex("key", l.Key)
	if err != nil {
		return nil, err
	}
	_, err = lg.key(key)
	return key, err
}

func prefixOf(b []byte) int16 {
	if len(b) < 2 {
		return -1
	}
	return int16(b[0])<<8 | int16(b[1])
}

func unhex(field string, s *string) ([]byte, error) {
	if s == nil {
		return nil, fmt.Errorf("%s is missing", field)
	}
	b, err := hex.DecodeString(*s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return b, nil
}

func head(start, name string, version int16, end string) []byte {
	out := recordbin.AppendJSONString([]byte(start), name)
	out = append(out, `,"version":`...)
	out = strconv.AppendInt(out, int64(version), 10)
	return append(out, end...)
}

func describeError(err error) []byte {
	return append(recordbin.AppendJSONString([]byte(`{"error":`), err.Error()), '}')
}

var groupLog = log{
	key: func(b []byte) (described, error) {
		k, err := groupmeta.DecodeKey(b)
		if err != nil {
			return described{version: prefixOf(b)}, err
		}
		return keyDescribed(k.Type().KeyName(), int16(k.Type()), k)
	},
	value: func(key, b []byte) (described, error) {
		t, err := groupmeta.TypeOfKey(key)
		if err != nil {
			return described{}, err
		}
		v, version, err := groupmeta.DecodeValue(t, b)
		if err != nil {
			return described{}, err
		}
		return valueDescribed(t.ValueName(), version, v)
	},
	named: func(name string) ([]byte, bool) {
		for t := range groupmeta.Type(1 << 8) {
			if t.ValueName() == name {
				return []byte{0, byte(t)}, true
			}
		}
		return nil, false
	},
}

var transactionLog = log{
	key: func(b []byte) (described, error) {
		k, err := txnlog.DecodeKey(b)
		if err != nil {
			return described{version: prefixOf(b)}, err
		}
		return keyDescribed(k.Type().KeyName(), int16(k.Type()), k)
	},
	value: func(_, b []byte) (described, error) {
		v, version, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, b)
		if err != nil {
			return described{}, err
		}
		return valueDescribed(v.Type().ValueName(), version, v)
	},
	named: func(name string) ([]byte, bool) {
		return []byte{0, 0}, name == txnlog.TypeTransactionLog.ValueName()
	},
}

type key interface {
	AppendTo(dst []byte) ([]byte, error)
	AppendJSON(dst []byte) []byte
}

type value interface {
	AppendTo(dst []byte, version int16) ([]byte, error)
	AppendJSON(dst []byte, version int16) []byte
}

func keyDescribed(name string, version int16, k key) (described, error) {
	b, err := k.AppendTo(nil)
	return described{name: name, version: version, json: k.AppendJSON(nil), bytes: b}, err
}

func valueDescribed(name string, version int16, v value) (described, error) {
	b, err := v.AppendTo(nil, version)
	return described{name: name, version: version, json: v.AppendJSON(nil, version), bytes: b}, err
}
