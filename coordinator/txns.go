package coordinator

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/marker"
	txnstate "github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// TxnShards is where the shards of transactional ids begin in a backend that holds those
// of groups from 0 on.
const TxnShards storage.ShardID = 0x4000

// Index files the keys of both kinds of shards.
func Index(id storage.ShardID, key []byte) (entity []byte, class storage.Class) {
	if id >= TxnShards {
		return txnstate.Index(id, key)
	}
	return state.Index(id, key)
}

type (
	txnMachine = machine.Machine[txn.Request, txnstate.Record, txn.Response, txn.Effect]
	txnShard   = shard.Shard[txn.Request, txnstate.Record, txn.Response, txn.Effect]
)

// newTxnShard makes the i-th shard of transactional ids.
func (n *Node) newTxnShard(i int) *txnShard {
	codec := &txnstate.Codec{Unreadable: n.badTxns.add, Versions: n.Finalized().writes()}
	n.txnCodecs[i] = codec
	return shard.New(shard.Options[txn.Request, txnstate.Record, txn.Response, txn.Effect]{
		ID:      TxnShards + storage.ShardID(i),
		Backend: n.o.Backend,
		Codec:   codec,
		New: func() txnMachine {
			c := n.o.Txn
			c.TransactionVersion = n.transactionVersion(n.Finalized())
			m := txn.New(c)
			n.txnTallies[i].begin(m)
			return m
		},
		Now:    time.Now,
		Passed: n.clock.passed,
		Effect: n.carryOut,
		Timer:  func(at time.Time) { n.clock.set(len(n.shards)+i, at) },
		Failed: func(err error) {
			n.o.Log.Error().Err(err).Msg("a shard failed; its transactional ids are asked to try again")
		},
	})
}

// Txn asks the shard of a request's transactional id. reply is called exactly
// once, maybe before Txn returns; it must not block.
func (n *Node) Txn(req txn.Request, reply func(txn.Response, error)) {
	if _, is := req.(txn.Init); is && n.Finalized().writes().Transaction == metadataversion.None {
		reply(nil, ErrNoTransactions)
		return
	}
	switch r := req.(type) {
	case txn.AddOffsets:
		r.Partition = int32(ShardOf(r.Group, len(n.shards)))
		n.txnPatiently(r, time.Now().Add(patience), reply)
		return
	case txn.AddPartitions, txn.AddImplicit:
		n.txnPatiently(req, time.Now().Add(patience), reply)
		return
	case txn.Init, txn.End, txn.Abort:
		n.txnWithID(req, reply)
		return
	}
	n.txnShard(req).Do(req, reply)
}

func (n *Node) txnShard(req txn.Request) *txnShard {
	id, _ := req.Entity()
	return n.txns[ShardOf(id, len(n.txns))]
}

// txnWithID asks, and asks again with a producer id that was never used when it takes
// one: nothing has changed then. Without one the answer is to try again, as Kafka's is.
func (n *Node) txnWithID(req txn.Request, reply func(txn.Response, error)) {
	n.txnShard(req).Do(req, func(resp txn.Response, err error) {
		if _, needed := resp.(txn.NeedProducerID); err != nil || !needed {
			reply(resp, err)
			return
		}
		n.ids.take(func(id txn.ProducerID, err error) {
			if err != nil {
				reply(nil, err)
				return
			}
			n.txnWithID(with(req, id), reply)
		})
	})
}

func with(req txn.Request, fresh txn.ProducerID) txn.Request {
	switch r := req.(type) {
	case txn.Init:
		r.Fresh = &fresh
		return r
	case txn.End:
		r.Fresh = &fresh
		return r
	case txn.Abort:
		r.Fresh = &fresh
		return r
	}
	return req
}

// carryOut does what transactions want done outside. It does not block.
func (n *Node) carryOut(e txn.Effect) {
	switch e := e.(type) {
	case txn.SendMarkers:
		n.records.after(e.Attempt.Producer, func() { n.markers.Send(e) })
	case txn.WantsProducerID:
		n.ids.take(func(id txn.ProducerID, err error) {
			if err == nil { // else the effect comes again
				n.Txn(with(e.Abort, id), func(txn.Response, error) {})
			}
		})
	}
}

// EachTxn asks every shard. reply gets the answers in the order of the shards, or the
// first error.
func (n *Node) EachTxn(req txn.Request, reply func([]txn.Response, error)) {
	all := &gathering[txn.Response]{answers: make([]txn.Response, len(n.txns)), left: len(n.txns), reply: reply}
	for i, s := range n.txns {
		s.Do(req, func(r txn.Response, err error) { all.add(i, r, err) })
	}
}

// txnTally keeps what a shard's machines have counted. Its shard's lock guards it.
type txnTally struct {
	before txn.Counters // of earlier machines
	now    *txn.Machine
}

func (t *txnTally) begin(m *txn.Machine) {
	if t.now != nil {
		t.before = sumTxns(t.before, t.now.Counters())
		t.before.Quarantined = 0 // counted anew
	}
	t.now = m
}

func sumTxns(a, b txn.Counters) txn.Counters {
	return txn.Counters{
		Committed: a.Committed + b.Committed, Aborted: a.Aborted + b.Aborted, TimedOut: a.TimedOut + b.TimedOut,
		Fenced: a.Fenced + b.Fenced, Killed: a.Killed + b.Killed, Rotated: a.Rotated + b.Rotated,
		Refused: a.Refused + b.Refused, Stale: a.Stale + b.Stale, Gone: a.Gone + b.Gone,
		Expired: a.Expired + b.Expired, Quarantined: a.Quarantined + b.Quarantined,
	}
}

// TxnStats are what the metrics of transactions are made of.
type TxnStats struct {
	txn.Counters
	Census        txn.Census // transactional ids, of shards that are open
	Markers       marker.Counters
	Open          int       // shards that are open
	Waiting       int       // decided transactions that wait for their markers
	WaitingSince  time.Time // the oldest of them; zero: none
	FreshIDs      int       // producer ids that are ready to be given out
	FreshIDsAsked int64     // how many the broker has given
}

// TxnStats looks at one shard after the other; none is opened for it.
func (n *Node) TxnStats() TxnStats {
	s := TxnStats{Census: txn.Census{}}
	for i, sh := range n.txns {
		t := &n.txnTallies[i]
		sh.Look(func(m txnMachine) {
			s.Counters = sumTxns(s.Counters, t.before)
			if t.now != nil {
				s.Counters = sumTxns(s.Counters, t.now.Counters())
			}
			if m != nil {
				s.Open++
				t.now.Census(s.Census)
			}
		})
	}
	s.Markers = n.markers.Counters()
	s.Waiting, s.WaitingSince = n.markers.Waiting()
	s.FreshIDs, s.FreshIDsAsked = n.ids.count()
	return s
}
