package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger is what the members know of their offsets: what they sent to be
// committed and what was acknowledged. It also gates their commits.
type ledger struct {
	mu       sync.Mutex
	seen     [partitions]map[int64]int // how often each offset was consumed
	sent     [partitions]int64
	acked    [partitions]int64
	commits  int // acknowledged
	inFlight int
	open     chan struct{} // closed while commits may be sent
}

// newLedger's gate is closed.
func newLedger() *ledger {
	l := &ledger{open: make(chan struct{})}
	for i := range l.seen {
		l.seen[i] = map[int64]int{}
	}
	return l
}

func (l *ledger) consumed(records []*kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.seen[r.Partition][r.Offset]++
	}
}

// send notes a commit that is about to be sent, and settle how it ended.
func (l *ledger) send(records []*kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight++
	for _, r := range records {
		l.sent[r.Partition] = max(l.sent[r.Partition], r.Offset+1)
	}
}

func (l *ledger) settle(records []*kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if err != nil {
		return
	}
	l.commits++
	for _, r := range records {
		l.acked[r.Partition] = max(l.acked[r.Partition], r.Offset+1)
	}
}

// pass waits until commits may be sent. It returns false when ctx ends first.
func (l *ledger) pass(ctx context.Context) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *ledger) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *ledger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *ledger) counts() (commits, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commits, l.inFlight
}

// positions are the offsets acknowledged and sent, by partition.
func (l *ledger) positions() (acked, sent [partitions]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked, l.sent
}

// allCommitted says whether offsets to the end of every partition are acknowledged.
func (l *ledger) allCommitted(records int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum int64
	for _, n := range l.acked {
		sum += n
	}
	return sum >= records
}

// onceEach checks that every record was consumed, and none twice.
func (l *ledger) onceEach(records int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var total int64
	for p, offsets := range l.seen {
		for offset, times := range offsets {
			if times != 1 {
				return fmt.Errorf("demo: the record at offset %d of partition %d was consumed %d times", offset, p, times)
			}
			total++
		}
	}
	if total != records {
		return fmt.Errorf("demo: %d records were written and %d consumed", records, total)
	}
	return nil
}
