package shard_test

import (
	"testing"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard"
	"github.com/kcoord/kcoord/storage/memlog"
)

func TestJumps(t *testing.T) {
	wall, passed := time.UnixMilli(1e12), time.Duration(77)
	var j shard.Jumps
	for i, tc := range []struct{ wall, passed, want time.Duration }{
		{0, 0, 0},
		{time.Hour, time.Hour, 0},
		{0, 900 * time.Millisecond, 0}, // slewed …
		{time.Second, 900 * time.Millisecond, 0},
		{time.Hour, time.Second, time.Hour - time.Second},
		{time.Minute, time.Minute, 0},
		{-24 * time.Hour, time.Minute, -24*time.Hour - time.Minute},
		{0, 0, 0},
	} {
		wall, passed = wall.Add(tc.wall), passed+tc.passed
		if got := j.Step(wall, passed); (got-tc.want).Abs() >= time.Second || (got == 0) != (tc.want == 0) {
			t.Errorf("%d: a jump by %v, not %v", i, got, tc.want)
		}
	}
}

// TestJump sets the wall clock of a shard back and forth: what waits goes on waiting for as long as it would have.
func TestJump(t *testing.T) {
	wall, passed := time.UnixMilli(1e12), time.Duration(0)
	toy := &shifting{toy: newToy(false)}
	backend := memlog.NewManual(toyIndex)
	defer backend.Close()
	s := shard.New(shard.Options[ask, rec, string, string]{
		Backend: backend, Codec: toyCodec{}, New: func() machine.Machine[ask, rec, string, string] { return toy },
		Now: func() time.Time { return wall }, Passed: func() time.Duration { return passed },
		Failed: func(err error) { t.Error(err) },
	})
	defer s.Close()
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{time.Hour, -24 * time.Hour, 0} {
		wall, passed = wall.Add(by+time.Minute), passed+time.Minute
		s.Fire()
		if toy.by != by {
			t.Errorf("jumped by %v, shifted by %v", by, toy.by)
		}
		toy.by = 0
	}
}

// shifting is a toy that is told of jumps.
type shifting struct {
	*toy
	by time.Duration
}

func (s *shifting) Shift(by time.Duration) { s.by += by }
