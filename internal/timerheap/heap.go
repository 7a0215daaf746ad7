// Package timerheap orders timers by when they are due. A timer is a value that
// knows its place, not a closure: it can be printed, moved and taken out, and what
// it is about is data. Timers of one moment fire in the order they were set.
package timerheap

import "time"

// Timer is a place in a heap for what it is about. Its zero value is not set.
type Timer[T any] struct {
	Of T

	when  time.Time
	seq   uint64
	place int // in the heap, from 1; 0: not set
}

// Set says whether the timer is in a heap.
func (t *Timer[T]) Set() bool { return t.place > 0 }

// When is the time it is set to.
func (t *Timer[T]) When() time.Time { return t.when }

// Heap is a heap of timers, the earliest first.
type Heap[T any] struct {
	timers []*Timer[T]
	seq    uint64
}

// Len is how many timers are set.
func (h *Heap[T]) Len() int { return len(h.timers) }

// First is the earliest timer, or nil.
func (h *Heap[T]) First() *Timer[T] {
	if len(h.timers) == 0 {
		return nil
	}
	return h.timers[0]
}

// Set sets a timer, or moves it if it is set.
func (h *Heap[T]) Set(t *Timer[T], when time.Time) {
	if t.place > 0 && t.when.Equal(when) {
		return
	}
	if t.place == 0 {
		h.timers = append(h.timers, t)
		t.place = len(h.timers)
	}
	h.seq++
	t.when, t.seq = when, h.seq
	h.down(h.up(t.place - 1))
}

// Cancel takes a timer out, if it is set.
func (h *Heap[T]) Cancel(t *Timer[T]) {
	if t.place == 0 {
		return
	}
	i, last := t.place-1, len(h.timers)-1
	h.swap(i, last)
	h.timers[last] = nil
	h.timers = h.timers[:last]
	t.place = 0
	if i < last {
		h.down(h.up(i))
	}
}

func (h *Heap[T]) less(i, j int) bool {
	a, b := h.timers[i], h.timers[j]
	if c := a.when.Compare(b.when); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}

func (h *Heap[T]) swap(i, j int) {
	h.timers[i], h.timers[j] = h.timers[j], h.timers[i]
	h.timers[i].place, h.timers[j].place = i+1, j+1
}

func (h *Heap[T]) up(i int) int {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (h *Heap[T]) down(i int) int {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.timers); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return i
		}
		h.swap(i, least)
		i = least
	}
}
