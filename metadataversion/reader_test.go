package metadataversion

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/kcoord/kcoord/txnlog"
)

// stored is a record of a synthetic store.
type stored struct {
	log        Log
	key, value []byte
	line       *recordtest.Line // nil: made here
}

// lines are Kafka's fixtures as records: values under their keys, keys with a value that fits where there is none.
func lines(t testing.TB) []stored {
	t.Helper()
	all := recordtest.Load(t, filepath.Join("..", "groupmeta", "testdata"))
	all = append(all, recordtest.Load(t, filepath.Join("..", "txnlog", "testdata"))...)
	if found, _ := filepath.Glob(filepath.Join("..", "..", "shared", "fixtures", "records", "*.jsonl")); len(found) > 0 {
		all = append(all, recordtest.Load(t, filepath.Join("..", "..", "shared", "fixtures", "records"))...)
	} else {
		t.Log("the shared fixtures are absent: only the samples in testdata are read")
	}
	var records []stored
	for i := range all {
		l := &all[i]
		r := stored{line: l}
		if l.TransactionLog() {
			r.log = TransactionsLog
		}
		record, key := l.Bytes(t)
		switch {
		case l.Case == "tombstone" && key != nil:
			r.key = key
		case l.Case == "tombstone" || key == nil:
			r.key = record
		default:
			r.key, r.value = key, record
		}
		records = append(records, r)
	}
	return records
}

func releaseOf(t testing.TB, s string) Release {
	t.Helper()
	to, err := ParseTarget(s)
	if err != nil {
		t.Fatal(err)
	}
	return to.Release
}

// TestReads440 compares with what Kafka 4.4.0 did with every line.
func TestReads440(t *testing.T) {
	reader, ours := ReaderOf(releaseOf(t, "4.4.0")), Ours()
	for _, r := range lines(t) {
		want := Read
		switch k := r.line.Kafka; {
		case k.Outcome == recordtest.Ignored, k.TransactionLogRead.Outcome == recordtest.Ignored:
			want = Skipped
		case k.Outcome == recordtest.Exception && r.log == GroupLog:
			want = FailedPartition
		case k.TransactionLogRead.Outcome == recordtest.Exception, k.Outcome == recordtest.Exception:
			want = PartialPartition
		}
		if got := reader.Read(r.log, r.key, r.value); got != want {
			t.Errorf("%s: %s, Kafka 4.4.0: %s", r.line.Raw, got, want)
		}
		if mine := ours.Read(r.log, r.key, r.value); mine > Quarantined || mine == Quarantined && want == Read && r.log == GroupLog {
			t.Errorf("%s: kcoord: %s, Kafka 4.4.0: %s", r.line.Raw, mine, want)
		}
	}
}

// TestReads391 compares with Kafka 3.9.1, whose Scala coordinators are the ones that it runs by default. They know record
// types 0 to 2 and skip the others.
func TestReads391(t *testing.T) {
	type verdict struct{ Outcome, Exception, Message string }
	reader := ReaderOf(releaseOf(t, "3.9.1"))
	compared := 0
	for _, r := range lines(t) {
		var line struct {
			Kafka391 json.RawMessage `json:"kafka391"`
		}
		if err := json.Unmarshal(r.line.Raw, &line); err != nil {
			t.Fatal(err)
		}
		if len(line.Kafka391) == 0 { // the sample has no 3.9.1
			continue
		}
		scala := verdict{Outcome: r.line.Kafka.Outcome}
		var by struct{ GroupMetadataManager, TransactionLog *verdict }
		if json.Unmarshal(line.Kafka391, &by) == nil {
			for _, v := range []*verdict{by.GroupMetadataManager, by.TransactionLog} {
				if v != nil {
					scala = *v
				}
			}
		}
		if by.TransactionLog == nil && r.log == TransactionsLog && r.line.Kafka.TransactionLogRead.Outcome != "" {
			scala.Outcome = r.line.Kafka.TransactionLogRead.Outcome
		}
		typ, err := groupmeta.TypeOfKey(r.key)
		if r.log == GroupLog && (err != nil || typ > 2) {
			continue // the new coordinator's verdict
		}
		if scala.Exception == "java.lang.AssertionError" || strings.Contains(scala.Message, "cannot be added to group") {
			continue // members that contradict one another: not a matter of the bytes
		}
		if strings.Contains(r.line.Note, "size ") || strings.Contains(r.line.Note, "tag count 2^32-1") {
			continue // 3.9.1 goes by the size of a tagged field that later releases read by its type; a rewrite mends it
		}
		compared++
		got := reader.Read(r.log, r.key, r.value)
		want := scala.Outcome == recordtest.Decoded || scala.Outcome == recordtest.Tombstone
		skipped := scala.Outcome == recordtest.Ignored
		if skipped != (got == Skipped) || !skipped && want != (got == Read) {
			t.Errorf("%s\n%s, Kafka 3.9.1: %+v", r.line.Raw, got, scala)
		}
	}
	t.Logf("%d lines compared", compared)
}

// TestKIP915 walks writers against readers: a) a record type, b) a value version, c) tagged fields that the reader does
// not know. It is the table of KIP-915, as far as the releases keep to it, and of what kcoord makes of it.
func TestKIP915(t *testing.T) {
	newIn39 := ReaderOf(releaseOf(t, "3.9.1")) // with group.coordinator.new.enable
	newIn39.highest[ConsumerGroups] = 0
	newIn39.unknownVersion[GroupLog], newIn39.damaged[GroupLog] = Misread, FailedPartition
	readers := []struct {
		name string
		Reader
	}{
		{"3.3.2", ReaderOf(releaseOf(t, "3.3.2"))}, // pre-915
		{"3.3.3", ReaderOf(releaseOf(t, "3.3.3"))}, // 915, Scala
		{"3.9.1", ReaderOf(releaseOf(t, "3.9.1"))},
		{"3.9.1 new", newIn39},
		{"4.0.0", ReaderOf(releaseOf(t, "4.0.0"))},
		{"4.4.0", ReaderOf(releaseOf(t, "4.4.0"))}, // post-915
		{"kcoord", Ours()},
	}
	offsetKey := must((&groupmeta.OffsetCommitKey{Group: "g", Topic: "t", Partition: 1}).AppendTo(nil))
	groupKey := must((&groupmeta.GroupMetadataKey{Group: "g"}).AppendTo(nil))
	consumerKey := must((&groupmeta.ConsumerGroupMetadataKey{Group: "g"}).AppendTo(nil))
	txnKey := must((&txnlog.TransactionLogKey{TransactionalID: "x"}).AppendTo(nil))
	offset := func(version int16, id byte, unknown string) []byte {
		v := groupmeta.NewOffsetCommitValue()
		v.Offset, v.LeaderEpoch = 7, 3
		v.TopicID[0], v.UnknownTags = id, groupmeta.UnknownTags(unknown)
		return must(v.AppendTo(nil, version))
	}
	txn := func(version int16, next int64, unknown string) []byte {
		v := txnlog.NewTransactionLogValue()
		v.NextProducerID, v.UnknownTags = next, txnlog.UnknownTags(unknown)
		return must(v.AppendTo(nil, version))
	}
	const R, S, M, Q, P, E, F = Read, Skipped, Misread, Quarantined, PartialPartition, EmptyPartition, FailedPartition
	const tag9 = "\x09\x01\x00"
	for _, c := range []struct {
		name       string
		log        Log
		key, value []byte
		want       [7]Outcome
	}{
		{"3.3 offset", GroupLog, offsetKey, offset(3, 0, ""), [7]Outcome{R, R, R, R, R, R, R}},
		{"3.3 transaction", TransactionsLog, txnKey, txn(0, -1, ""), [7]Outcome{R, R, R, R, R, R, R}},
		{"2.0 offset", GroupLog, offsetKey, offset(1, 0, ""), [7]Outcome{R, R, R, R, R, R, R}},
		{"0.8.2 offset", GroupLog, append([]byte{0, 0}, offsetKey[2:]...), offset(0, 0, ""), [7]Outcome{R, R, R, R, R, R, R}},
		{"3.9 offset under a 0.8.2 key", GroupLog, append([]byte{0, 0}, offsetKey[2:]...), offset(3, 0, ""), [7]Outcome{R, R, R, R, F, F, Q}},

		{"a 4.0 consumer group", GroupLog, consumerKey, must((&groupmeta.ConsumerGroupMetadataValue{}).AppendTo(nil, 0)), [7]Outcome{E, S, S, R, R, R, R}},
		{"a tombstone of one", GroupLog, consumerKey, nil, [7]Outcome{E, S, S, R, R, R, R}},
		{"a unknown to all", GroupLog, []byte{0, 99, 1, 2}, []byte{0, 0}, [7]Outcome{E, S, S, S, S, S, S}},
		{"a transaction log", TransactionsLog, []byte{0, 1, 1, 2}, []byte{0, 0}, [7]Outcome{P, S, S, S, S, S, S}},

		{"b 4.1 offset", GroupLog, offsetKey, offset(4, 0, ""), [7]Outcome{E, R, R, R, R, R, R}},
		{"b later offset", GroupLog, offsetKey, offset(5, 0, ""), [7]Outcome{E, E, E, M, F, F, R}},
		{"b later offset in another layout", GroupLog, offsetKey, []byte{0, 5, 1, 2, 3}, [7]Outcome{E, E, E, F, F, F, Q}},
		{"b flexible group", GroupLog, groupKey, must(groupmeta.NewGroupMetadataValue().AppendTo(nil, 4)), [7]Outcome{E, R, R, R, R, R, R}},
		{"b 4.0 transaction", TransactionsLog, txnKey, txn(1, 5, ""), [7]Outcome{P, R, R, R, R, R, R}},
		{"b later transaction", TransactionsLog, txnKey, txn(2, 5, ""), [7]Outcome{P, P, P, P, S, S, R}},

		{"c topic id", GroupLog, offsetKey, offset(4, 1, ""), [7]Outcome{E, R, R, R, R, R, R}},
		{"c unknown tag", GroupLog, offsetKey, offset(4, 1, tag9), [7]Outcome{E, R, R, R, R, R, R}},
		{"c unknown tag of a transaction", TransactionsLog, txnKey, txn(1, 5, tag9), [7]Outcome{P, R, R, R, R, R, R}},
	} {
		for i, r := range readers {
			if got := r.Read(c.log, c.key, c.value); got != c.want[i] {
				t.Errorf("%s read by %s: %s, want %s", c.name, r.name, got, c.want[i])
			}
		}
	}
}

// TestUnknownTagsAreWrittenBack is the half of case c that is kcoord's own promise.
func TestUnknownTagsAreWrittenBack(t *testing.T) {
	v := groupmeta.NewOffsetCommitValue()
	v.TopicID[3], v.UnknownTags = 4, groupmeta.UnknownTags("\x09\x01\x00")
	value := must(v.AppendTo(nil, 4))
	var got groupmeta.OffsetCommitValue
	if _, err := got.Decode(value); err != nil {
		t.Fatal(err)
	}
	if back := must(got.AppendTo(nil, 4)); !bytes.Equal(back, value) {
		t.Errorf("%x became %x", value, back)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
