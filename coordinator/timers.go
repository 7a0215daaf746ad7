package coordinator

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/kcoord/kcoord/coordinator/shard"
)

// clock fires the timers of all shards from one goroutine: each shard says when
// it is due next, and the clock sleeps until the earliest.
type clock struct {
	due   []atomic.Int64 // by shard: nanoseconds since 1970, never: MaxInt64
	wake  chan struct{}
	start time.Time
	jumps shard.Jumps // of run alone
}

const never = math.MaxInt64

func newClock(shards int) *clock {
	c := &clock{due: make([]atomic.Int64, shards), wake: make(chan struct{}, 1), start: time.Now()}
	for i := range c.due {
		c.due[i].Store(never)
	}
	return c
}

// passed goes on evenly, whatever is done to the wall clock.
func (c *clock) passed() time.Duration { return time.Since(c.start) }

// set says when a shard is due; the zero time: never.
func (c *clock) set(shard int, at time.Time) {
	ns := int64(never)
	if !at.IsZero() {
		ns = at.UnixNano()
	}
	if was := c.due[shard].Swap(ns); ns < was {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// run fires until stop is closed.
func (c *clock) run(stop <-chan struct{}, fire func(shard int)) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		earliest := int64(never)
		wall := time.Now()
		jumped := c.jumps.Step(wall, c.passed()) != 0 // then each shard has to look what is due
		now := wall.UnixNano()
		for i := range c.due {
			at := c.due[i].Load()
			if at <= now || jumped && at != never {
				fire(i)
				at = c.due[i].Load()
			}
			earliest = min(earliest, at)
		}
		wait := time.Hour
		if earliest != never {
			// Not shorter than a millisecond: that is what Kafka's clocks tell apart.
			wait = max(time.Duration(earliest-time.Now().UnixNano()), time.Millisecond)
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-c.wake:
		case <-stop:
			return
		}
	}
}
