package kafka

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

// txnOffsetCommit, by version:
//
//	2   leader epochs; before: -1, unknown
//	3   generation, member and instance (KIP-447); before: none
//	4   TRANSACTION_ABORTABLE; before: INVALID_TXN_STATE
//	5   adds the group to the transaction (KIP-890); before, AddOffsetsToTxn has
//	6   topics by id, and a group that does not exist is GROUP_ID_NOT_FOUND; before: ILLEGAL_GENERATION
//
// As with plain commits, partitions that the broker does not have are answered here, and where
// no other is left nobody is asked.
func (k *call) txnOffsetCommit(body []byte) error {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = k.version
	if err := readRequest(req, bytes.Clone(body)); err != nil { // the group keeps what is pending
		return err
	}
	failed := k.takeMissing(req)
	shape := func(k *call, resp group.Response, err error) kmsg.Response {
		return k.txnCommitted(req, failed, resp, err)
	}
	k.answer = shape
	if len(req.Topics) == 0 {
		k.complete(kmsg.NewPtrTxnOffsetCommitResponse(), nil)
		return nil
	}
	k.c.srv.o.Transactions.CommitInTxn(
		coordinator.TxnCommit{
			Client: k.c.client(), TxnCommit: group.TxnCommit{TxnOffsetCommitRequest: req, Fences: k.version >= 3}, Implicit: k.version >= 5,
		},
		func(done group.TxnCommitted, err error) {
			k.c.legacyCommit(req, done.Legacy)
			k.complete(done.TxnOffsetCommitResponse, err)
		},
	)
	return nil
}

// legacyCommit counts commits that name no member, and says who sends what is not allowed:
// each client's every so often, since they do so all the time.
func (c *conn) legacyCommit(req *kmsg.TxnOffsetCommitRequest, what group.LegacyCommit) {
	var outcome string
	switch what {
	case group.LegacyAllowed:
		outcome = "allowed"
	case group.LegacyWarned:
		outcome = "warned"
	case group.LegacyDenied:
		outcome = "denied"
	default:
		return
	}
	c.srv.m.legacy.WithLabelValues(outcome).Inc()
	if what == group.LegacyAllowed {
		return
	}
	dropped, ok := c.srv.legacy.allow(time.Now())
	if !ok {
		return
	}
	e := c.srv.o.Log.Warn().Str("group", req.Group).Str("transactionalId", req.TransactionalID).Str("clientId", c.clientID).Str("client", c.remote).Int16("version", req.Version)
	if dropped > 0 {
		e = e.Int("unlogged", dropped)
	}
	e.Msgf("a transactional offset commit that names no member of its group was %s (transaction.offset.commit.legacy): nothing keeps one of a stale instance apart", outcome)
}

// takeMissing takes the partitions out of a request that the broker does not have, and names
// the topics of the others.
func (k *call) takeMissing(req *kmsg.TxnOffsetCommitRequest) (failed []failure) {
	there := k.c.srv.newLookup()
	for i := range req.Topics {
		t := &req.Topics[i]
		parts := make([]int32, len(t.Partitions))
		for j := range t.Partitions {
			parts[j] = t.Partitions[j].Partition
		}
		if k.version >= 6 {
			there.id(t.TopicID, parts...)
		} else {
			there.name(t.Topic, parts...)
		}
	}
	there.ask(k.c.context())
	kept := req.Topics[:0]
	for _, t := range req.Topics {
		known := there.byName[t.Topic]
		if k.version >= 6 {
			known = there.byID[t.TopicID]
		}
		missing := codeUnknownTopicOrPartition
		if known == nil && k.version >= 6 {
			missing = codeUnknownTopicID
		}
		if there.code != 0 {
			missing = there.code
		}
		if known == nil && len(t.Partitions) == 0 { // Kafka names a topic that it does not know all the same
			failed = append(failed, failure{topic: t.Topic, id: t.TopicID, empty: true})
		}
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
			if known != nil && known.Has(p.Partition) {
				return false
			}
			failed = append(failed, failure{topic: t.Topic, id: t.TopicID, partition: p.Partition, code: missing})
			return true
		})
		if known != nil {
			t.Topic, t.TopicID = known.Name, known.ID
		}
		if len(t.Partitions) > 0 {
			kept = append(kept, t)
		}
	}
	req.Topics = kept
	return failed
}

func (k *call) txnCommitted(req *kmsg.TxnOffsetCommitRequest, failed []failure, resp group.Response, err error) kmsg.Response {
	out, ok := resp.(*kmsg.TxnOffsetCommitResponse)
	if err != nil || !ok || out == nil {
		out = coordinator.TxnCommitOf(req, code(err))
	}
	ids := map[string][16]byte{}
	for i := range req.Topics {
		ids[req.Topics[i].Topic] = req.Topics[i].TopicID
	}
	for i := range out.Topics {
		t := &out.Topics[i]
		t.TopicID = ids[t.Topic]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if k.version < 6 && p.ErrorCode == codeGroupNotFound {
				p.ErrorCode = codeIllegalGeneration
			}
			p.ErrorCode = k.txnCode(p.ErrorCode)
		}
	}
	if len(failed) > 0 {
		k.addTxnFailures(out, failed)
	}
	return out
}

// addTxnFailures adds what the coordinator was not asked for.
func (k *call) addTxnFailures(out *kmsg.TxnOffsetCommitResponse, failed []failure) {
	for i := range failed {
		k.failed(failed[i].code)
	}
	out.Topics = merged(failed, out.Topics,
		func(f *failure) kmsg.TxnOffsetCommitResponseTopic {
			return kmsg.TxnOffsetCommitResponseTopic{Topic: f.topic, TopicID: f.id}
		},
		func(f *failure) kmsg.TxnOffsetCommitResponseTopicPartition {
			return kmsg.TxnOffsetCommitResponseTopicPartition{Partition: f.partition, ErrorCode: f.code}
		},
		func(t *kmsg.TxnOffsetCommitResponseTopic) (topicName, *[]kmsg.TxnOffsetCommitResponseTopicPartition) {
			if k.version >= 6 {
				return topicName{id: t.TopicID}, &t.Partitions
			}
			return topicName{topic: t.Topic}, &t.Partitions
		})
}
