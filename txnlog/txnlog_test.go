package txnlog_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/kcoord/kcoord/txnlog"
	"pgregory.net/rapid"
)

var codec = recordtest.Codec{
	Key: func(b []byte) (a recordtest.Answer, err error) {
		k, err := txnlog.DecodeKey(b)
		if err != nil {
			return a, err
		}
		a.Name, a.Version, a.JSON = k.Type().KeyName(), int16(k.Type()), k.AppendJSON(nil)
		a.Rewritten, err = k.AppendTo(nil)
		return a, err
	},
	Value: func(_, b []byte) (a recordtest.Answer, err error) {
		v, version, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, b)
		if err != nil || v == nil {
			a.Tombstone = v == nil
			return a, err
		}
		a.Name, a.Version, a.JSON = v.Type().ValueName(), version, v.AppendJSON(nil, version)
		a.Rewritten, err = v.AppendTo(nil, version)
		return a, err
	},
}

func checkFixtures(t *testing.T, dir string) {
	n := 0
	for _, l := range recordtest.Load(t, dir) {
		if l.TransactionLog() {
			codec.Check(t, &l)
			n++
		}
	}
	if n == 0 {
		t.Errorf("no fixture in %s", dir)
	}
}

// TestKafkaFixturesSample runs everywhere; TestKafkaFixtures where the full set is.
func TestKafkaFixturesSample(t *testing.T) { checkFixtures(t, "testdata") }

func TestKafkaFixtures(t *testing.T) { checkFixtures(t, recordtest.Shared(t, "..")) }

func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Int16Range(0, 2).Draw(t, "version")
		v := txnlog.NewTransactionLogValue()
		recordtest.Draw(t, v, version > 0)
		if version == 0 {
			v.PreviousProducerID, v.NextProducerID, v.NextProducerEpoch, v.ClientTransactionVersion = -1, -1, -1, 0
		}
		b, err := v.AppendTo(nil, version)
		if err != nil {
			t.Fatal(err)
		}
		got, gotVersion, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, b)
		if err != nil || gotVersion != version || !reflect.DeepEqual(got, v) {
			t.Fatalf("wrote v%d\n%+v, read v%d\n%+v, %v", version, v, gotVersion, got, err)
		}
		for n := range b {
			if _, _, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes are read", n, len(b))
			}
		}
	})
}

// TestVersion0LosesNothing: the fields that only v1 has decide who is fenced, so that writing v0 must not drop them.
func TestVersion0LosesNothing(t *testing.T) {
	for _, set := range []func(*txnlog.TransactionLogValue){
		func(v *txnlog.TransactionLogValue) { v.PreviousProducerID = 5 },
		func(v *txnlog.TransactionLogValue) { v.NextProducerID = 5 },
		func(v *txnlog.TransactionLogValue) { v.NextProducerEpoch = 5 },
		func(v *txnlog.TransactionLogValue) { v.ClientTransactionVersion = 2 },
		func(v *txnlog.TransactionLogValue) { v.UnknownTags = v.UnknownTags.Append(9, nil) },
	} {
		v := txnlog.NewTransactionLogValue()
		if _, err := v.AppendTo(nil, 0); err != nil {
			t.Fatal(err)
		}
		set(v)
		var encodeErr *txnlog.EncodeError
		if b, err := v.AppendTo(nil, 0); !errors.As(err, &encodeErr) || len(b) > 0 {
			t.Errorf("%+v was written as v0: %v", v, err)
		}
	}
}

// FuzzDecode: no panic, no large allocation, and what is read comes back.
func FuzzDecode(f *testing.F) {
	for _, l := range recordtest.Load(f, "testdata") {
		if record, _ := l.Bytes(f); record != nil {
			f.Add(record)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := txnlog.DecodeKey(b); err == nil {
			if again, err := k.AppendTo(nil); err == nil && !bytes.HasPrefix(b, again) && !bytes.Contains(again, []byte("\ufffd")) {
				t.Fatalf("%x became %x", b, again)
			}
		}
		if b == nil {
			return
		}
		v, version, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, b)
		if err != nil {
			return
		}
		if n := recordtest.Footprint(v); n > 500+32*len(b) {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		again, err := v.AppendTo(nil, version)
		if err != nil {
			t.Skip("a string that grew over 32767 bytes when its malformed UTF-8 was replaced")
		}
		got, gotVersion, err := txnlog.DecodeValue(txnlog.TypeTransactionLog, again)
		if err != nil || gotVersion != version || !reflect.DeepEqual(got, v) {
			t.Fatalf("v%d %+v became v%d %+v, %v", version, v, gotVersion, got, err)
		}
	})
}
