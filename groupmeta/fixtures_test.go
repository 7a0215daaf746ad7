package groupmeta_test

import (
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
)

var codec = recordtest.Codec{
	Key: func(b []byte) (a recordtest.Answer, err error) {
		k, err := groupmeta.DecodeKey(b)
		if err != nil {
			return a, err
		}
		a.Name, a.Version, a.JSON = k.Type().KeyName(), int16(k.Type()), k.AppendJSON(nil)
		a.Rewritten, err = k.AppendTo(nil)
		return a, err
	},
	Value: func(key, b []byte) (a recordtest.Answer, err error) {
		typ, err := groupmeta.TypeOfKey(key)
		if err != nil {
			return a, err
		}
		v, version, err := groupmeta.DecodeValue(typ, b)
		if err != nil || v == nil {
			a.Tombstone = v == nil
			return a, err
		}
		a.Name, a.Version, a.JSON = typ.ValueName(), version, v.AppendJSON(nil, version)
		a.Rewritten, err = v.AppendTo(nil, version)
		return a, err
	},
}

func checkFixtures(t *testing.T, dir string) {
	seen := map[groupmeta.Type]bool{}
	for _, l := range recordtest.Load(t, dir) {
		if l.TransactionLog() {
			continue
		}
		codec.Check(t, &l)
		checkGroupOfKey(t, &l)
		if _, key := l.Bytes(t); key != nil {
			typ, _ := groupmeta.TypeOfKey(key)
			seen[typ] = true
		}
	}
	for typ := range groupmeta.Type(64) {
		if typ.ValueName() != "" && !seen[typ] {
			t.Errorf("no fixture of a %s", typ.ValueName())
		}
	}
}

// checkGroupOfKey: the shortcut sees the group that the whole decoder sees.
func checkGroupOfKey(t *testing.T, l *recordtest.Line) {
	t.Helper()
	record, key := l.Bytes(t)
	if key == nil {
		key = record
	}
	k, err := groupmeta.DecodeKey(key)
	if err != nil {
		return
	}
	group, typ, err := groupmeta.GroupOfKey(key)
	if err != nil || string(group) != k.GroupID() || typ != k.Type() {
		t.Errorf("%s, %s: GroupOfKey says %q, %s, %v; want %q", l.Type, l.Note, group, typ, err, k.GroupID())
	}
}

// TestKafkaFixturesSample runs everywhere; TestKafkaFixtures where the full set is.
func TestKafkaFixturesSample(t *testing.T) { checkFixtures(t, "testdata") }

func TestKafkaFixtures(t *testing.T) { checkFixtures(t, recordtest.Shared(t, "..")) }
