package coordinator

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// patience is how long the first request of a transaction waits for the one before to be
// complete. Its markers mostly take a millisecond or two, and a client that is told to
// come again (CONCURRENT_TRANSACTIONS) does so after 20 ms or more: the wait is half of a short
// transaction's time.
const patience = 100 * time.Millisecond

// waitingRoom holds requests that found their transactional id's last transaction decided and not
// complete. They are asked anew when it may be, or answered as they were when their time is over.
type waitingRoom struct {
	mu     sync.Mutex
	of     map[string]map[*waiter]struct{}
	closed bool
}

type waiter struct {
	again func()
	timer *time.Timer
}

// enter has f called once: when the id's transaction may be complete, or after a while. It
// returns what takes f back, which says whether it was in time; nil when nobody is let in.
func (r *waitingRoom) enter(id string, after time.Duration, f func()) (leave func() bool) {
	w := &waiter{again: f}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.of == nil {
		r.of = map[string]map[*waiter]struct{}{}
	}
	if r.of[id] == nil {
		r.of[id] = map[*waiter]struct{}{}
	}
	r.of[id][w] = struct{}{}
	leave = func() bool { return r.take(id, w) }
	w.timer = time.AfterFunc(after, func() {
		if leave() {
			f()
		}
	})
	return leave
}

func (r *waitingRoom) take(id string, w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.of[id][w]; !there {
		return false
	}
	delete(r.of[id], w)
	if len(r.of[id]) == 0 {
		delete(r.of, id)
	}
	w.timer.Stop()
	return true
}

// call calls those who wait for an id.
func (r *waitingRoom) call(id string) {
	r.mu.Lock()
	waiting := r.of[id]
	delete(r.of, id)
	r.mu.Unlock()
	for w := range waiting {
		w.timer.Stop()
		w.again()
	}
}

// close calls everybody, and lets nobody in any more.
func (r *waitingRoom) close() {
	r.mu.Lock()
	r.closed = true
	all := r.of
	r.of = nil
	r.mu.Unlock()
	for _, waiting := range all {
		for w := range waiting {
			w.timer.Stop()
			w.again()
		}
	}
}

// txnPatiently asks, and asks again while the transaction before is being completed.
func (n *Node) txnPatiently(req txn.Request, until time.Time, reply func(txn.Response, error)) {
	n.txnShard(req).Do(req, func(resp txn.Response, err error) {
		left := time.Until(until)
		if err != nil || !tooEarly(resp) || left <= 0 {
			reply(resp, err)
			return
		}
		id, _ := req.Entity()
		leave := n.waiting.enter(id, left, func() { n.txnPatiently(req, until, reply) })
		if leave == nil {
			reply(resp, err)
			return
		}
		// It may have become complete just before.
		n.txnShard(req).Do(req, func(resp txn.Response, err error) {
			if (err != nil || !tooEarly(resp)) && leave() {
				reply(resp, err)
			}
		})
	})
}

// tooEarly says whether a response is CONCURRENT_TRANSACTIONS.
func tooEarly(resp txn.Response) bool {
	code := int16(0)
	switch r := resp.(type) {
	case txn.Result:
		code = r.Code
	case *kmsg.AddOffsetsToTxnResponse:
		code = r.ErrorCode
	case *kmsg.AddPartitionsToTxnResponseTransaction:
		if len(r.Topics) > 0 && len(r.Topics[0].Partitions) > 0 {
			code = r.Topics[0].Partitions[0].ErrorCode
		}
	}
	return code == kerr.ConcurrentTransactions.Code
}
