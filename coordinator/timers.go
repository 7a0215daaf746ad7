package coordinator

import (
	"math"
	"sync/atomic"
	"time"
)

// clock fires the timers of all shards from one goroutine: each shard says when
// it is due next, and the clock sleeps until the earliest.
type clock struct {
	due  []atomic.Int64 // by shard: nanoseconds since 1970, never: MaxInt64
	wake chan struct{}
}

const never = math.MaxInt64

func newClock(shards int) *clock {
	c := &clock{due: make([]atomic.Int64, shards), wake: make(chan struct{}, 1)}
	for i := range c.due {
		c.due[i].Store(never)
	}
	return c
}

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
		now := time.Now().UnixNano()
		for i := range c.due {
			at := c.due[i].Load()
			if at <= now {
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
