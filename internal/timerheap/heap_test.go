package timerheap

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestOrder holds the heap to a sorted list.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[int]
		timers := make([]*Timer[int], 8)
		for i := range timers {
			timers[i] = &Timer[int]{Of: i}
		}
		var model []*Timer[int] // in the order of their setting
		drop := func(x *Timer[int]) {
			model = slices.DeleteFunc(model, func(y *Timer[int]) bool { return x == y })
		}
		first := func() *Timer[int] {
			var least *Timer[int]
			for _, x := range model {
				if least == nil || x.When().Before(least.When()) {
					least = x
				}
			}
			return least
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				x := rapid.SampledFrom(timers).Draw(t, "timer")
				when := time.UnixMilli(rapid.Int64Range(0, 5).Draw(t, "when"))
				if !x.Set() || !x.When().Equal(when) {
					drop(x)
					model = append(model, x)
				}
				h.Set(x, when)
			},
			"cancel": func(t *rapid.T) {
				x := rapid.SampledFrom(timers).Draw(t, "timer")
				drop(x)
				h.Cancel(x)
			},
			"shift": func(t *rapid.T) {
				h.Shift(time.Duration(rapid.Int64Range(-5, 5).Draw(t, "by")) * time.Millisecond)
			},
			"pop": func(*rapid.T) {
				if x := h.First(); x != nil {
					drop(x)
					h.Cancel(x)
				}
			},
			"": func(t *rapid.T) {
				if h.First() != first() || h.Len() != len(model) {
					t.Fatalf("first is %v of %d, not %v of %d", h.First(), h.Len(), first(), len(model))
				}
				for _, x := range timers {
					if x.Set() != slices.Contains(model, x) {
						t.Fatalf("timer %d: set %t", x.Of, x.Set())
					}
				}
			},
		})
	})
}
