package memlog

import "slices"

// run is the goroutine of New: it makes durable what it may and says so.
func (b *Backend) run() {
	for {
		b.mu.Lock()
		for !b.closed && !b.ready() {
			b.work.Wait()
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return
		}
		b.deliver()
	}
}

// ready says whether a step may become durable now. It wants b.mu held.
func (b *Backend) ready() bool {
	return len(b.queue) > 0 && (!b.faults.held || b.faults.allowed > 0)
}

// Sync makes durable what was appended, as far as Hold allows it, and calls the
// callbacks before it returns. With New's backends it is not needed, but does no harm.
func (b *Backend) Sync() { b.deliver() }

// deliver settles step after step and calls back for each.
func (b *Backend) deliver() {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	for {
		b.mu.Lock()
		if b.closed || !b.ready() {
			b.mu.Unlock()
			return
		}
		st := b.queue[0]
		b.queue = b.queue[1:]
		if b.faults.held {
			b.faults.allowed--
		}
		b.settle(st)
		if st.err != nil {
			st.end = 0
			b.drop(st.log)
		}
		b.mu.Unlock()
		st.log.durable(st.end, st.err)
	}
}

// settle makes a step durable, or takes its records back if it is one that
// fails without being written. It wants b.mu held.
func (b *Backend) settle(st step) {
	s := st.log.shard
	if st.log.failed != nil {
		return // lost with the step before it
	}
	if st.err == nil || st.written {
		s.durable = max(s.durable, st.end)
	}
	if st.err != nil {
		st.log.failed = st.err
		s.recs = slices.Clone(s.durableRecs())
		s.end = s.durable
	}
}

// drop forgets the steps that follow a failed one. It wants b.mu held.
func (b *Backend) drop(l *Log) {
	b.queue = slices.DeleteFunc(b.queue, func(st step) bool { return st.log == l })
}
