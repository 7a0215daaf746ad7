package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// internalTopic says whether a topic is one of Kafka's own. That of transactions is in no cluster behind
// kcoord, or in none that counts.
func internalTopic(name string) bool {
	return name == txn.OffsetsTopic || name == "__transaction_state" || name == "__share_group_state"
}

// addPartitionsToTxn, by version:
//
//	0–3   a client's own transaction; PRODUCER_FENCED from 2 on, before: INVALID_PRODUCER_EPOCH
//	4, 5  several transactions, of brokers: to be added to, or only looked at (KIP-890)
//
// Where a partition does not exist, nothing of its transaction is attempted, as in Kafka. Nor where a
// client names an internal topic, which it cannot write to: a group is added by AddOffsetsToTxn.
func (k *call) addPartitionsToTxn(body []byte) error {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	all := req.Transactions
	if k.version < 4 {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch = req.TransactionalID, req.ProducerID, req.ProducerEpoch
		for _, t := range req.Topics {
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		all = []kmsg.AddPartitionsToTxnRequestTransaction{one}
	}
	there := k.c.srv.newLookup()
	for i := range all {
		for _, t := range all[i].Topics {
			there.name(t.Topic, t.Partitions...)
		}
	}
	there.ask(k.c.context())
	k.addPartitions(all, there)
	return nil
}

// addPartitions asks for the transactions whose partitions are all there.
func (k *call) addPartitions(all []kmsg.AddPartitionsToTxnRequestTransaction, there *lookup) {
	k.parts, k.missing = make([]part, len(all)), len(all)
	k.answer = func(k *call, _ group.Response, err error) kmsg.Response { return k.addedPartitions(all, err) }
	if len(all) == 0 {
		k.complete(nil, nil)
	}
	for i := range all {
		t := &all[i]
		if refused := notThere(t, k.version >= 4, there); refused != nil {
			k.completePart(i, refused, nil)
			continue
		}
		r := txn.AddPartitions{Client: k.c.client(), AddPartitionsToTxnRequestTransaction: t, Broker: k.version >= 4}
		k.c.srv.o.Transactions.Txn(r, func(resp txn.Response, err error) {
			if _, stale := resp.(txn.Stale); stale && err == nil {
				k.completeTxn(resp, nil)
				return
			}
			k.completePart(i, resp, err)
		})
	}
}

// notThere is the answer to a transaction with partitions that don't exist, or that are no client's
// to write to, nil if there are none.
func notThere(t *kmsg.AddPartitionsToTxnRequestTransaction, broker bool, there *lookup) *kmsg.AddPartitionsToTxnResponseTransaction {
	missing := false
	resp := txn.AnswerOnce(t, func(topic string, partition int32) int16 {
		if !broker && internalTopic(topic) {
			missing = true
			return codeTopicAuthorizationFailed
		}
		if there.has(topic, partition) {
			return kerr.OperationNotAttempted.Code
		}
		missing = true
		if there.code != 0 {
			return there.code
		}
		return codeUnknownTopicOrPartition
	})
	if !missing {
		return nil
	}
	return resp
}

func (k *call) addedPartitions(all []kmsg.AddPartitionsToTxnRequestTransaction, err error) kmsg.Response {
	out := kmsg.NewPtrAddPartitionsToTxnResponse()
	for i := range all {
		p := k.partOr(i, err)
		t, ok := p.resp.(*kmsg.AddPartitionsToTxnResponseTransaction)
		if p.err != nil || !ok {
			failed := code(p.err)
			t = txn.AnswerPartitions(&all[i], func(string, int32) int16 { return failed })
		}
		for j := range t.Topics {
			for l := range t.Topics[j].Partitions {
				at := &t.Topics[j].Partitions[l]
				at.ErrorCode = k.txnCode(at.ErrorCode)
			}
		}
		if k.version >= 4 {
			out.Transactions = append(out.Transactions, *t)
			continue
		}
		for _, at := range t.Topics {
			topic := kmsg.NewAddPartitionsToTxnResponseTopic()
			topic.Topic = at.Topic
			for _, p := range at.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			out.Topics = append(out.Topics, topic)
		}
	}
	return out
}
