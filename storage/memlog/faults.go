package memlog

import "slices"

// faults is what goes wrong next. It is guarded by Backend.mu.
type faults struct {
	held    bool
	allowed int // steps that Release lets through while held
	next    error
	written bool
}

// strike makes a step fail if it is the one to.
func (f *faults) strike(st *step) {
	st.err, st.written = f.next, f.written
	f.next = nil
}

// Hold keeps what is appended from becoming durable.
func (b *Backend) Hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults.held, b.faults.allowed = true, 0
}

// Release lets the next n steps become durable, in the order of their Append
// over all shards, those that are still to come included. With a negative n it ends the Hold.
func (b *Backend) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 {
		b.faults.held = false
	} else {
		b.faults.allowed += n
	}
	b.work.Signal()
}

// FailNext makes the next Append of whichever shard fail: its durable callback
// gets the error when the step's turn has come, and later steps of this Log are
// lost. written says whether the failed step is nevertheless in the log when the
// shard is opened again.
func (b *Backend) FailNext(err error, written bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults.next, b.faults.written = err, written
}

// Pending is the number of steps that are appended and not durable.
func (b *Backend) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Crash ends the backend as a crash of the process would: what is not durable
// is lost and no callback is called any more. It returns the backend after the
// restart, without faults.
func (b *Backend) Crash() *Backend {
	b.mu.Lock()
	b.closed = true
	b.queue = nil
	b.work.Broadcast()
	b.mu.Unlock()
	b.pump.Wait()
	b.delivering.Lock() // a Sync on another stack ends too
	defer b.delivering.Unlock()
	return b.Durable()
}

// Durable is another backend with what a crash would leave of this one, which goes on. It
// may be called in a durable callback.
func (b *Backend) Durable() *Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := newBackend(b.index, b.manual)
	for id, s := range b.shards {
		after.shards[id] = &shard{id: id, recs: slices.Clone(s.durableRecs()), durable: s.durable, end: s.durable}
	}
	after.start()
	return after
}
