package shard

import "time"

// least is what counts as a step of the wall clock: less than that is a clock being slewed.
const least = time.Second

// Jumps finds steps of the wall clock: somebody sets it, a virtual machine moves or a
// laptop wakes up. Records hold wall time, and what runs out while nobody may look (sessions,
// join phases) is about time that has passed. Its zero value is ready.
type Jumps struct {
	begun  bool
	wall   time.Time
	passed time.Duration
}

// Step returns how far the wall clock has jumped since the step before, 0 mostly.
// passed is a clock that goes on evenly, from wherever.
func (j *Jumps) Step(wall time.Time, passed time.Duration) time.Duration {
	by := wall.Round(0).Sub(j.wall) - (passed - j.passed)
	if j.begun && by.Abs() < least {
		return 0
	}
	if !j.begun {
		by = 0
	}
	j.begun, j.wall, j.passed = true, wall.Round(0), passed
	return by
}
