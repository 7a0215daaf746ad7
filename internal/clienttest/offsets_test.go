package clienttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestOffsetsWithoutMembers uses a group as a place for offsets alone, through each
// library's admin, and looks again after a kill.
func TestOffsetsWithoutMembers(t *testing.T) {
	t.Parallel()
	each(t, libraries(), func(t *testing.T, l library) {
		k := start(t)
		k.topic(topic, partitions, 1)
		a := l.admin(t, k)
		want := map[int32]int64{0: 5, 1: 0, 2: 1 << 40, 4: 7}
		note := strings.Repeat("ä", 2000)
		must(t, a.commit("g", topic, want, note))
		wantOffsets(t, a, want)
		must(t, a.commit("g", topic, map[int32]int64{0: 3}, "back"))
		want[0] = 3
		wantOffsets(t, a, want)

		k.kill()
		k.restart()
		wantOffsets(t, a, want)
		for p, w := range map[int32]string{0: "back", 2: note} {
			if m, err := a.metadata("g", topic, p); err != nil || m != w {
				t.Errorf("metadata of partition %d: %d bytes %.20q, %v; want %d bytes", p, len(m), m, err, len(w))
			}
		}
		d, err := a.describe("g")
		if err != nil || d.state != "Empty" || len(d.members) > 0 {
			t.Errorf("described as %+v, %v", d, err)
		}
		wantListed(t, a, "g")
	})
}

func TestOffsetsAreDeleted(t *testing.T) {
	t.Parallel()
	each(t, today(), func(t *testing.T, l library) {
		k := start(t)
		k.topic(topic, partitions, 1)
		a := l.admin(t, k)
		want := map[int32]int64{0: 1, 1: 2, 2: 3}
		must(t, a.commit("g", topic, want, ""))
		must(t, a.deleteOffset("g", topic, 1))
		delete(want, 1)
		wantOffsets(t, a, want)
		must(t, a.commit("other", topic, want, ""))
		must(t, a.deleteGroup("other"))
		wantListed(t, a, "g")
		k.kill()
		k.restart()
		wantOffsets(t, a, want)
		wantListed(t, a, "g")
		if err := a.deleteGroup("other"); err == nil {
			t.Error("a group was deleted twice")
		}
	})
}

// TestGroupInUseIsNotDeleted: members protect their group, and what they subscribe to.
func TestGroupInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	each(t, today(), func(t *testing.T, l library) {
		g := newGroup(t, l, start(t))
		g.join("anna", "")
		g.shared()
		g.consumed(records)
		if err := g.admin.deleteGroup(g.id); err == nil {
			t.Error("the group was deleted")
		}
		if err := g.admin.deleteOffset(g.id, topic, 0); err == nil {
			t.Error("an offset of a subscribed topic was deleted")
		}
		if err := g.admin.commit(g.id, topic, map[int32]int64{0: 0}, ""); err == nil {
			t.Error("one who is no member committed")
		}
		g.kept()
		g.leave("anna")
		until(t, "the group can be deleted", func() error { return g.admin.deleteGroup(g.id) })
	})
}

// TestMetadataHasALimit: what is too long is refused, and leaves what was there.
func TestMetadataHasALimit(t *testing.T) {
	t.Parallel()
	each(t, today(), func(t *testing.T, l library) {
		k := start(t)
		k.topic(topic, partitions, 1)
		a := l.admin(t, k)
		longest := strings.Repeat("x", 4096)
		must(t, a.commit("g", topic, map[int32]int64{0: 1}, longest))
		if err := a.commit("g", topic, map[int32]int64{0: 2}, longest+"x"); err == nil {
			t.Error("4097 characters were accepted")
		}
		wantOffsets(t, a, map[int32]int64{0: 1})
		if m, err := a.metadata("g", topic, 0); err != nil || m != longest {
			t.Errorf("metadata is %d bytes, %v", len(m), err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantOffsets asks until it is answered, since clients may first have to notice a restart.
func wantOffsets(t *testing.T, a admin, want map[int32]int64) {
	t.Helper()
	until(t, "the offsets can be fetched", func() error {
		got, err := a.committed("g", topic, partitions)
		if err == nil && !maps.Equal(got, want) {
			t.Fatalf("committed is %v, want %v", got, want)
		}
		return err
	})
}

func wantListed(t *testing.T, a admin, want ...string) {
	t.Helper()
	until(t, "the groups can be listed", func() error {
		got, err := a.list()
		if slices.Sort(got); err == nil && !slices.Equal(got, want) {
			return fmt.Errorf("listed is %v, want %v", got, want)
		}
		return err
	})
}
