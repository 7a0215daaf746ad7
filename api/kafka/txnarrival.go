package kafka

import (
	"slices"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// setOut asks a transaction's shard and waits: the next request of the connection would be
// about the same transaction. A shard that cannot be asked is a Result.
func (c *conn) setOut(p *produced, producer txn.Producer, req txn.Request) (txn.Response, error) {
	type answer struct {
		resp    txn.Response
		arrived func()
	}
	ch := make(chan answer, 1)
	c.srv.o.Transactions.ProduceInTxn(req, producer, func(resp txn.Response, arrived func(), err error) {
		if err != nil {
			resp = txn.Result{Code: code(err)}
		}
		ch <- answer{resp, arrived}
	})
	select {
	case a := <-ch:
		p.arrived = a.arrived
		return a.resp, nil
	case <-c.done:
		go func() { (<-ch).arrived() }()
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, c.closed
	}
}

// awaits has a call tell that what it lets through is written: when the broker answers it, or the connection ends.
func (k *call) awaits(p *produced) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.arrived, p.arrived = p.arrived, nil
}

// awaitsRecords says whether the broker has still to say that records of a transaction are written.
func (c *conn) awaitsRecords() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.calls, func(k *call) bool { return k.arrived != nil })
}

// lostAll tells of what the broker has not answered that nobody will know any more whether it is written.
func (c *conn) lostAll() {
	c.mu.Lock()
	var all []func()
	for _, k := range c.calls {
		if k.arrived != nil {
			all = append(all, k.arrived)
			k.arrived = nil
		}
	}
	c.mu.Unlock()
	for _, f := range all {
		f()
	}
}
