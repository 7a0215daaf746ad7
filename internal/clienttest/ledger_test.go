package clienttest

import (
	"fmt"
	"sync"
)

// ledger is what the members of a group were told, all together.
type ledger struct {
	mu    sync.Mutex
	seen  map[int32]map[int64]int // partition → offset → how often it was consumed
	acked map[int32]int64         // the highest offset that was acknowledged
	acks  int
}

func newLedger() *ledger {
	return &ledger{seen: map[int32]map[int64]int{}, acked: map[int32]int64{}}
}

func (l *ledger) consumed(partition int32, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[partition] == nil {
		l.seen[partition] = map[int64]int{}
	}
	l.seen[partition][offset]++
}

// acknowledged notes that a commit of the offset succeeded, or that a fetch told of it.
func (l *ledger) acknowledged(partition int32, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset > l.acked[partition] {
		l.acks++
		l.acked[partition] = offset
	}
}

func (l *ledger) acknowledgements() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// promised are the offsets that kcoord must know of from now on.
func (l *ledger) promised() map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(map[int32]int64, len(l.acked))
	for p, o := range l.acked {
		c[p] = o
	}
	return c
}

// kept compares what was promised with what is committed, asked after it. Members
// commit in order, and a generation that is over commits no more: so what is
// committed only grows.
func kept(promised, committed map[int32]int64) error {
	for p, o := range promised {
		if at, there := committed[p]; at < o {
			return fmt.Errorf("partition %d: offset %d was acknowledged, %d is committed (any: %t)", p, o, at, there)
		}
	}
	return nil
}

// ends are the offsets after the last record, by partition.
type ends map[int32]int64

func allAt(end int64) ends {
	e := ends{}
	for p := range int32(partitions) {
		e[p] = end
	}
	return e
}

// allConsumed says whether every record was consumed, and committed.
func (l *ledger) allConsumed(e ends) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, end := range e {
		for o := range end {
			if l.seen[p][o] == 0 {
				return fmt.Errorf("partition %d: the record %d of %d was not consumed", p, o, end)
			}
		}
		if l.acked[p] < end {
			return fmt.Errorf("partition %d: %d is acknowledged, of %d", p, l.acked[p], end)
		}
	}
	return nil
}
