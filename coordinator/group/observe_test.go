package group

import (
	"testing"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

func (s *script) census() {
	c := Census{}
	s.h.m.Census(c)
	s.h.printf("%v\n", c)
}

// TestGlimpse: what is seen of a group differs exactly when its state or members do.
func TestGlimpse(t *testing.T) {
	h := newHarness(t.Errorf)
	h.cfg.ResidentOffsets = 1
	s := script{t: t, h: h}
	last := Glimpse{}
	h.open()
	for _, step := range []struct {
		line    string
		changes bool
	}{
		{"commit o=t-0:1", true},
		{"commit o=t-0:2", false},
		{"fetch", false},
		{"stable m=a/i,b", true},
		{"heartbeat m=a gen=2 instance=i", false},
		{"commit m=b gen=2 o=t-0:3", false},
		{"join as=a' instance=i", true}, // replaces a in the same generation
		{"leave m=b", true},
		{"advance 2m", true}, // nobody joins again
		{"advance 1m", false},
	} {
		s.run(step.line)
		now := h.m.Glimpse("g")
		if (now != last) != step.changes {
			t.Errorf("%s: changed: %v", step.line, now != last)
		}
		last = now
	}
	h.apply(state.Record{Kind: state.KindOffset, Group: "other", Topic: "t"})
	if h.m.Glimpse("none") != (Glimpse{}) {
		t.Error("a group that does not exist is seen")
	}
	if h.m.Resident() == 0 {
		t.Error("nothing is in memory")
	}
}
