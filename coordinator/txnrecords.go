package coordinator

import "github.com/kcoord/kcoord/coordinator/txn"

// ProduceInTxn asks whether records may be written as part of a transaction (txn.AddImplicit, or txn.AddPartitions
// that verifies). They then have set out: until arrived is called, which has to be once, no marker of their very epoch
// is sent. A broker that got it first would take them for those of a transaction that nobody ends, and
// who reads committed records would wait there for ever. Markers of later epochs end what is on its way by
// themselves. Like reply, arrived is called from whichever goroutine.
func (n *Node) ProduceInTxn(req txn.Request, producer txn.Producer, reply func(resp txn.Response, arrived func(), err error)) {
	n.produceOnce(req, producer, true, reply)
}

// produceOnce waits for the transaction before outside of the gate, as commitOnce does.
func (n *Node) produceOnce(req txn.Request, producer txn.Producer, patient bool, reply func(txn.Response, func(), error)) {
	in := n.records.enter(producer)
	arrived := func() { n.records.leave(producer, in) }
	n.txnShard(req).Do(req, func(resp txn.Response, err error) {
		if err == nil && (!patient || !tooEarly(resp)) {
			reply(resp, arrived, nil)
			return
		}
		arrived()
		if err != nil {
			reply(nil, func() {}, err)
			return
		}
		n.Txn(req, func(resp txn.Response, err error) {
			if err != nil || tooEarly(resp) {
				reply(resp, func() {}, err)
				return
			}
			n.produceOnce(req, producer, false, reply)
		})
	})
}
