package coordinator

import "sync"

// lanes carry a request on to its next shard. The answer of the first comes on the goroutine on
// which the storage tells all shards what is durable: the next shard may have to
// read a group from the disk first, for which nobody else is to wait.
//
// What is for one shard keeps its order.
type lanes struct {
	all [4]lane
}

type lane struct {
	mu     sync.Mutex
	came   sync.Cond
	queue  []func()
	closed bool
}

// run starts the lanes' goroutines, which end by close.
func (l *lanes) run(done *sync.WaitGroup) {
	for i := range l.all {
		one := &l.all[i]
		one.came.L = &one.mu
		done.Go(one.run)
	}
}

// do runs f soon, after what came before for the same shard. After close, it runs at once.
func (l *lanes) do(shard int, f func()) {
	one := &l.all[shard%len(l.all)]
	one.mu.Lock()
	if one.closed {
		one.mu.Unlock()
		f()
		return
	}
	one.queue = append(one.queue, f)
	one.mu.Unlock()
	one.came.Signal()
}

func (l *lane) run() {
	var now []func()
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.closed {
			l.came.Wait()
		}
		if len(l.queue) == 0 {
			l.mu.Unlock()
			return
		}
		now, l.queue = l.queue, now[:0]
		l.mu.Unlock()
		for i, f := range now {
			now[i] = nil
			f()
		}
	}
}

// close ends the lanes when they have done what there is to do.
func (l *lanes) close() {
	for i := range l.all {
		one := &l.all[i]
		one.mu.Lock()
		one.closed = true
		one.mu.Unlock()
		one.came.Signal()
	}
}
