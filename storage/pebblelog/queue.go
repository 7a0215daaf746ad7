package pebblelog

import "sync"

// queue is what one goroutine has to do: things that are added by any, and all
// taken at once by the one. The zero value wants init.
type queue[T any] struct {
	mu     sync.Mutex
	wake   sync.Cond
	items  []T
	closed bool
	failed func() error
}

// init sets what ends the queue's goroutine beside close.
func (q *queue[T]) init(failed func() error) {
	q.wake.L = &q.mu
	q.failed = failed
}

func (q *queue[T]) add(v T) {
	q.mu.Lock()
	q.items = append(q.items, v)
	if len(q.items) == 1 {
		q.wake.Signal()
	}
	q.mu.Unlock()
}

// take waits for items and swaps them for the empty slice given, so that two
// slices serve for ever. It returns false when the backend has failed, or is
// closed and everything has been taken.
func (q *queue[T]) take(empty []T) ([]T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed && q.failed() == nil {
		q.wake.Wait()
	}
	if len(q.items) == 0 || q.failed() != nil {
		return nil, false
	}
	items := q.items
	q.items = empty[:0]
	return items, true
}

// await waits until take would not.
func (q *queue[T]) await() {
	q.mu.Lock()
	for len(q.items) == 0 && !q.closed && q.failed() == nil {
		q.wake.Wait()
	}
	q.mu.Unlock()
}

// close lets the goroutine end when it has taken what is there.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.wake.Broadcast()
	q.mu.Unlock()
}

func (q *queue[T]) wakeAll() {
	q.mu.Lock()
	q.wake.Broadcast()
	q.mu.Unlock()
}
