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

// Before is part of Queued.
func (t *Timer[T]) Before(o *Timer[T]) bool {
	if c := t.when.Compare(o.when); c != 0 {
		return c < 0
	}
	return t.seq < o.seq
}

// Place is part of Queued.
func (t *Timer[T]) Place() *int { return &t.place }

// Heap is a heap of timers, the earliest first.
type Heap[T any] struct {
	queue Queue[*Timer[T]]
	seq   uint64
}

// Len is how many timers are set.
func (h *Heap[T]) Len() int { return len(h.queue.Items) }

// First is the earliest timer, or nil.
func (h *Heap[T]) First() *Timer[T] {
	if h.Len() == 0 {
		return nil
	}
	return h.queue.Items[0]
}

// Set sets a timer, or moves it if it is set.
func (h *Heap[T]) Set(t *Timer[T], when time.Time) {
	if t.place > 0 && t.when.Equal(when) {
		return
	}
	h.seq++
	t.when, t.seq = when, h.seq
	h.queue.Put(t)
}

// Shift moves all timers. Their order stays.
func (h *Heap[T]) Shift(by time.Duration) {
	for _, t := range h.queue.Items {
		t.when = t.when.Add(by)
	}
}

// Cancel takes a timer out, if it is set.
func (h *Heap[T]) Cancel(t *Timer[T]) { h.queue.Remove(t) }
