package groupmeta_test

import (
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
)

func hotRecords() (*groupmeta.OffsetCommitKey, *groupmeta.OffsetCommitValue) {
	v := groupmeta.NewOffsetCommitValue()
	v.Offset, v.LeaderEpoch, v.CommitTimestamp, v.TopicID = 123456, 7, 1690000000123, groupmeta.UUID{1, 2, 3}
	return &groupmeta.OffsetCommitKey{Group: "payments-service", Topic: "orders", Partition: 17}, v
}

// TestHotPathAllocations: a commit writes these two records per partition.
func TestHotPathAllocations(t *testing.T) {
	k, v := hotRecords()
	m := groupmeta.NewGroupMetadataValue()
	m.Members = make([]groupmeta.MemberMetadata, 3)
	buf := make([]byte, 0, 1<<10)
	key, value := must(k.AppendTo(nil)), must(v.AppendTo(nil, 4))
	var k2 groupmeta.OffsetCommitKey
	var v2 groupmeta.OffsetCommitValue
	for _, c := range []struct {
		name string
		most float64
		do   func()
	}{
		{"append key", 0, func() { k.AppendTo(buf) }},
		{"append offset v3", 0, func() { v.AppendTo(buf, 3) }},
		{"append offset v4", 0, func() { v.AppendTo(buf, 4) }},
		{"append group", 0, func() { m.AppendTo(buf, 4) }},
		{"group of key", 0, func() { groupmeta.GroupOfKey(key) }},
		{"decode key", 2, func() { k2.Decode(key) }},
		{"decode offset", 0, func() { v2.Decode(value) }}, // no metadata
	} {
		if n := testing.AllocsPerRun(100, c.do); n > c.most {
			t.Errorf("%s allocates %v times, at most %v", c.name, n, c.most)
		}
	}
}

func BenchmarkAppendOffsetCommit(b *testing.B) {
	k, v := hotRecords()
	buf := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		out, _ := k.AppendTo(buf)
		v.AppendTo(out, 4)
	}
}

func BenchmarkDecodeOffsetCommit(b *testing.B) {
	k, v := hotRecords()
	key, value := must(k.AppendTo(nil)), must(v.AppendTo(nil, 4))
	b.ReportAllocs()
	for b.Loop() {
		var k groupmeta.OffsetCommitKey
		var v groupmeta.OffsetCommitValue
		if err := k.Decode(key); err != nil {
			b.Fatal(err)
		}
		if _, err := v.Decode(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGroupOfKey(b *testing.B) {
	k, _ := hotRecords()
	key := must(k.AppendTo(nil))
	b.ReportAllocs()
	for b.Loop() {
		groupmeta.GroupOfKey(key)
	}
}
