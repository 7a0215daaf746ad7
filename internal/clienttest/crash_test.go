package clienttest

import "testing"

// TestGroupOutlivesKill kills kcoord while members commit. Afterwards every
// acknowledged offset is there, and the same members go on.
func TestGroupOutlivesKill(t *testing.T) {
	t.Parallel()
	each(t, libraries(), func(t *testing.T, l library) {
		g := newGroup(t, l, start(t))
		for _, c := range []string{"anna", "ben", "carla"} {
			g.join(c, "")
		}
		g.shared()
		at := g.ledger.acknowledgements()
		until(t, "commits are acknowledged", func() error {
			if g.ledger.acknowledgements() == at && g.ledger.allConsumed(allAt(records)) != nil {
				return errNotYet
			}
			return nil
		})
		g.kcoord.kill()
		g.kcoord.restart()
		g.kept()
		if err := g.kcoord.produce(t.Context(), g.kcoord.client(), topic, partitions, 5); err != nil {
			t.Fatal(err)
		}
		g.consumed(records + 5)
		g.shared()

		// A group without members outlives it, too.
		for _, c := range g.clients() {
			g.leave(c)
		}
		g.kcoord.kill()
		g.kcoord.restart()
		g.consumed(records + 5)
	})
}

// TestStaticMembersOutliveKill: members that kcoord has stored are known to it
// afterwards, and go on in their generation.
func TestStaticMembersOutliveKill(t *testing.T) {
	t.Parallel()
	each(t, today(), func(t *testing.T, l library) {
		if !l.static {
			t.Skip("the library has no static members")
		}
		g := newGroup(t, l, start(t))
		for _, c := range []string{"anna", "ben"} {
			g.join(c, "instance-of-"+c)
		}
		before := g.shared()
		g.kcoord.kill()
		g.kcoord.restart()
		g.consumed(records)
		after := g.shared()
		for _, c := range g.clients() {
			if was, is := before.member(t, c), after.member(t, c); was.instance != is.instance {
				t.Errorf("%s was %+v and is %+v", c, was, is)
			}
		}
	})
}
