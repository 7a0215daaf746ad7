package main

import (
	"slices"
	"sync"
	"time"
)

// kind is a kind of request of those that behave.
type kind int

const (
	heartbeat kind = iota
	commit
	fetch
	kinds
)

func (k kind) String() string { return [kinds]string{"heartbeat", "commit", "fetch"}[k] }

// tally are the latencies of a phase.
type tally struct {
	mu     sync.Mutex
	took   [kinds][]uint32 // microseconds
	behind []uint32        // how late requests left
}

func (t *tally) add(k kind, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took[k] = append(t.took[k], uint32(d.Microseconds()))
}

func (t *tally) late(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind = append(t.behind, uint32(d.Microseconds()))
}

// quantiles of each kind, in milliseconds. Nothing may be added any more.
func (t *tally) quantiles(q float64) (of [kinds]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range of {
		of[k] = quantile(t.took[k], q)
	}
	return of
}

// quantile is that of microseconds, in milliseconds.
func quantile(of []uint32, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return float64(of[min(int(q*float64(len(of))), len(of)-1)]) / 1000
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	if n := len(of); n%2 == 0 {
		return (of[n/2-1] + of[n/2]) / 2
	}
	return of[len(of)/2]
}
