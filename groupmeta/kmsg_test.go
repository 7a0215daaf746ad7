package groupmeta_test

import (
	"bytes"
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// TestLikeKmsg: franz-go's codecs, written by others from the same facts, agree on bytes that are in order. (On others
// they do not: kmsg checks less.)
func TestLikeKmsg(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &groupmeta.OffsetCommitKey{}
		recordtest.Draw(t, k, false)
		theirs := kmsg.OffsetCommitKey{Version: 1, Group: k.Group, Topic: k.Topic, Partition: k.Partition}
		same(t, must(k.AppendTo(nil)), theirs.AppendTo(nil))

		g := &groupmeta.GroupMetadataKey{}
		recordtest.Draw(t, g, false)
		theirGroup := kmsg.GroupMetadataKey{Version: 2, Group: g.Group}
		same(t, must(g.AppendTo(nil)), theirGroup.AppendTo(nil))

		version := rapid.Int16Range(0, 4).Draw(t, "version")
		o := groupmeta.NewOffsetCommitValue()
		recordtest.Draw(t, o, version >= 4)
		ours := must(o.AppendTo(nil, version))
		var theirOffset kmsg.OffsetCommitValue
		if err := theirOffset.ReadFrom(ours); err != nil {
			t.Fatal(err)
		}
		same(t, ours, theirOffset.AppendTo(nil))
		if theirOffset.Offset != o.Offset || theirOffset.Metadata != o.Metadata || theirOffset.CommitTimestamp != o.CommitTimestamp {
			t.Fatalf("%+v, they read %+v", o, theirOffset)
		}

		m := groupmeta.NewGroupMetadataValue()
		recordtest.Draw(t, m, version >= 4)
		ours = must(m.AppendTo(nil, version))
		var theirMeta kmsg.GroupMetadataValue
		if err := theirMeta.ReadFrom(ours); err != nil {
			t.Fatal(err)
		}
		same(t, ours, theirMeta.AppendTo(nil))
		if theirMeta.Generation != m.Generation || len(theirMeta.Members) != len(m.Members) || groupmeta.FromPtr(theirMeta.Leader) != m.Leader {
			t.Fatalf("%+v, they read %+v", m, theirMeta)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func same(t *rapid.T, ours, theirs []byte) {
	t.Helper()
	if !bytes.Equal(ours, theirs) {
		t.Fatalf("kcoord writes\n%x, kmsg\n%x", ours, theirs)
	}
}
