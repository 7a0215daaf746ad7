package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/marker"
)

// TxnCommit is a TxnOffsetCommit, and is answered by a group.TxnCommitted, in whose
// partitions there are codes of package txn, too.
type TxnCommit struct {
	txn.Client
	group.TxnCommit
	// Implicit, from version 5 on, adds the group to the transaction (KIP-890). Before, it
	// must have been added.
	Implicit bool
}

// CommitInTxn commits offsets as part of a transaction: the transaction's shard says
// whether they are, and then the group's whether they may be. reply is called exactly
// once, maybe before CommitInTxn returns; it must not block.
//
// Between the two the transaction may be decided. A marker that reached the group's shard
// first would leave the offsets pending for ever: so it waits (see mark).
func (n *Node) CommitInTxn(r TxnCommit, reply func(group.TxnCommitted, error)) {
	if r.Group == "" { // before the transaction is looked at, as in Kafka
		reply(group.TxnCommitted{TxnOffsetCommitResponse: TxnCommitOf(r.TxnOffsetCommitRequest, kerr.InvalidGroupID.Code)}, nil)
		return
	}
	producer := txn.Producer{ID: txn.ProducerID(r.ProducerID), Epoch: txn.Epoch(r.ProducerEpoch)}
	partition := int32(ShardOf(r.Group, len(n.shards)))
	var ask txn.Request = txn.VerifyOffsets{TransactionalID: r.TransactionalID, Producer: producer, Partition: partition}
	if r.Implicit {
		ask = txn.AddImplicit{
			Client: r.Client, TransactionalID: r.TransactionalID, Producer: producer,
			Topics: []txn.Topic{{Name: txn.OffsetsTopic, Partitions: []int32{partition}}},
		}
	}
	throughGate(n, &n.commits, r.ProducerID, ask, r.Implicit, func(resp txn.Response, arrived func(), err error) {
		if err != nil {
			arrived()
			reply(group.TxnCommitted{}, err)
			return
		}
		if code := resp.(txn.Result).Code; code != 0 {
			arrived()
			reply(group.TxnCommitted{TxnOffsetCommitResponse: TxnCommitOf(r.TxnOffsetCommitRequest, code)}, nil)
			return
		}
		n.lanes.do(int(partition), func() {
			n.commitPending(r, reply)
			arrived()
		})
	})
}

// commitPending has decided when it returns; what is decided is answered when it is durable.
func (n *Node) commitPending(r TxnCommit, reply func(group.TxnCommitted, error)) {
	n.Group(r.TxnCommit, func(resp group.Response, err error) {
		done, _ := resp.(group.TxnCommitted)
		reply(done, err)
	})
}

// TxnCommitOf answers all partitions of a request with one code.
func TxnCommitOf(r *kmsg.TxnOffsetCommitRequest, code int16) *kmsg.TxnOffsetCommitResponse {
	out := kmsg.NewPtrTxnOffsetCommitResponse()
	for i := range r.Topics {
		t := &r.Topics[i]
		rt := kmsg.TxnOffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
		for j := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: t.Partitions[j].Partition, ErrorCode: code})
		}
		out.Topics = append(out.Topics, rt)
	}
	return out
}

// Marker writes a marker to one of our shards of groups, whoever sends it. reply is called
// exactly once; it must not block.
func (n *Node) Marker(partition int32, m group.Marker, reply func(group.Response, error)) {
	n.commits.after(m.Producer, func() {
		n.lanes.do(int(partition), func() { n.shards[partition].Do(m, reply) })
	})
}

// Partitions is how many partitions of __consumer_offsets there are here.
func (n *Node) Partitions() int32 { return int32(len(n.shards)) }

// mark is marker.Options.Group. A marker that a group refuses is of a transaction that is over.
func (n *Node) mark(partition int32, m marker.Marker, reply func(error)) {
	n.Marker(partition, group.Marker{
		Producer: int64(m.Producer.ID), Epoch: int16(m.Producer.Epoch), Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch,
		TransactionVersion: m.TransactionVersion,
	}, func(_ group.Response, err error) { reply(err) })
}

// reportMarkers is marker.Options.Report. When Txn returns, what is reported has been decided on.
func (n *Node) reportMarkers(req txn.Request, reply func(error)) {
	n.Txn(req, func(_ txn.Response, err error) { reply(err) })
	id, _ := req.Entity()
	n.waiting.call(id)
}
