package coordinator

import "github.com/kcoord/kcoord/coordinator/txn"

// ProduceInTxn asks whether records may be written as part of a transaction (txn.AddImplicit, or txn.AddPartitions
// that verifies). They then have set out: until arrived is called, which has to be once, no marker of their very epoch
// is sent. A broker that got it first would take them for those of a transaction that nobody ends, and
// who reads committed records would wait there for ever. Markers of later epochs end what is on its way by
// themselves. Like reply, arrived is called from whichever goroutine.
func (n *Node) ProduceInTxn(req txn.Request, producer txn.Producer, reply func(resp txn.Response, arrived func(), err error)) {
	throughGate(n, &n.records, producer, req, true, reply)
}
