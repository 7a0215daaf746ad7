package state_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/metadataversion"
)

// Whatever was written before, a record of an offset is written as groupmeta writes it.
func TestOffsetsAreWrittenLikeAnyRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var codec state.Codec
		var key, value []byte // as the shard keeps them: one record behind the other
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			level := rapid.SampledFrom([]metadataversion.Version{metadataversion.Latest, metadataversion.V2_0_IV0}).Draw(t, "version")
			versions := metadataversion.Writes(level, metadataversion.Defaults(level))
			codec.Versions = versions
			r := drawOffset(t)
			k, v := len(key), len(value)
			var tombstone bool
			key, value, tombstone = codec.Append(key, value, &r)
			wantKey, wantValue := direct(t, &r, versions)
			if !bytes.Equal(key[k:], wantKey) || !bytes.Equal(value[v:], wantValue) || tombstone != r.Tombstone {
				t.Fatalf("%+v\n got %x = %x, %v\nwant %x = %x", r, key[k:], value[v:], tombstone, wantKey, wantValue)
			}
		}
	})
}

func drawOffset(t *rapid.T) state.Record {
	names := rapid.SampledFrom([]string{"a", "b", "ab", ""})
	times := rapid.SampledFrom([]time.Time{{}, time.UnixMilli(1).UTC(), time.UnixMilli(2).UTC()})
	r := state.Record{Kind: state.KindOffset, Group: names.Draw(t, "group"), Topic: names.Draw(t, "topic")}
	r.Partition = rapid.Int32Range(0, 3).Draw(t, "partition")
	r.LegacyKey = rapid.IntRange(0, 9).Draw(t, "key") == 0
	if r.Tombstone = rapid.IntRange(0, 4).Draw(t, "value") == 0; r.Tombstone {
		return r
	}
	r.Offset = state.Offset{
		Offset: rapid.Int64().Draw(t, "offset"), LeaderEpoch: rapid.Int32Range(-1, 0).Draw(t, "leader epoch"),
		Metadata: names.Draw(t, "metadata"), Committed: times.Draw(t, "committed"),
	}
	if rapid.IntRange(0, 3).Draw(t, "expires") == 0 {
		r.Offset.Expires = time.UnixMilli(3).UTC()
		r.Offset.LeaderEpoch = -1
	} else {
		r.Offset.TopicID[0] = rapid.ByteRange(0, 1).Draw(t, "topic id")
	}
	return r
}

func direct(t *rapid.T, r *state.Record, versions metadataversion.RecordVersions) (key, value []byte) {
	var err error
	if r.LegacyKey {
		k := groupmeta.LegacyOffsetCommitKey{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		key, err = k.AppendTo(nil)
	} else {
		k := groupmeta.OffsetCommitKey{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		key, err = k.AppendTo(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Tombstone {
		return key, nil
	}
	o := &r.Offset
	v := groupmeta.OffsetCommitValue{
		Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, CommitTimestamp: recordbin.Millis(o.Committed),
		ExpireTimestamp: recordbin.Millis(o.Expires), TopicID: o.TopicID,
	}
	if value, err = v.AppendTo(nil, versions.OffsetCommit(!o.Expires.IsZero())); err != nil {
		t.Fatal(err)
	}
	return key, value
}
