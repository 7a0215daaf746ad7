package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

// add makes partitions part of a producer's transaction, which begins if it has not.
func (m *Machine) add(e *entry, request string, by Client, p Producer, topics Topics, version int16, out *output) int16 {
	t := m.hard.Txn(e.id)
	switch {
	case t == nil:
		return invalidProducerIDMapping
	case t.Status.Preparing():
		// Before the epoch (KAFKA-18464): it may be about to change, and the
		// producer to know already to what.
		return concurrentTransactions
	case t.Producer.ID != p.ID:
		return invalidProducerIDMapping
	case t.Producer.Epoch != p.Epoch:
		m.refused(e, t, request, by, p)
		return producerFenced
	case t.Status == state.Ongoing && t.Topics.Contain(topics):
		return none
	}
	m.write(e, t.With(topics, version, m.now), out)
	return none
}

// verify says whether partitions are part of a producer's transaction.
func (m *Machine) verify(e *entry, request string, by Client, p Producer) (*state.Txn, int16) {
	t := m.hard.Txn(e.id)
	switch {
	case t == nil || t.Producer.ID != p.ID:
		return nil, invalidProducerIDMapping
	case t.Producer.Epoch != p.Epoch:
		m.refused(e, t, request, by, p)
		return nil, producerFenced
	case t.Status.Preparing():
		return nil, concurrentTransactions
	}
	return t, none
}

func verdict(t *state.Txn, topic string, partition int32) int16 {
	if !t.Topics.Has(topic, partition) {
		return transactionAbortable
	}
	return none
}

func (m *Machine) addPartitions(e *entry, r AddPartitions, out *output) Response {
	p := Producer{ID: ProducerID(r.ProducerID), Epoch: Epoch(r.ProducerEpoch)}
	if r.VerifyOnly {
		t, code := m.verify(e, "AddPartitionsToTxn", r.Client, p)
		return AnswerOnce(r.AddPartitionsToTxnRequestTransaction, func(topic string, partition int32) int16 {
			if code != none {
				return code
			}
			return verdict(t, topic, partition)
		})
	}
	version := int16(2)
	if !r.Broker {
		version = 0
		if stale, is := m.control(e, "AddPartitionsToTxn", r.Client, p); is {
			return stale
		}
	}
	code := m.add(e, "AddPartitionsToTxn", r.Client, p, topicsOf(r.Topics), version, out)
	return AnswerPartitions(r.AddPartitionsToTxnRequestTransaction, func(string, int32) int16 { return code })
}

func (m *Machine) addOffsets(e *entry, r AddOffsets, out *output) Response {
	p := Producer{ID: ProducerID(r.ProducerID), Epoch: Epoch(r.ProducerEpoch)}
	if stale, is := m.control(e, "AddOffsetsToTxn", r.Client, p); is {
		return stale
	}
	return offsetsReply(m.add(e, "AddOffsetsToTxn", r.Client, p, offsetsPartition(r.Partition), 0, out))
}

func (m *Machine) addImplicit(e *entry, r AddImplicit, out *output) int16 {
	return m.add(e, "Produce or TxnOffsetCommit", r.Client, r.Producer, state.TopicsOf(r.Topics...), 2, out)
}

func (m *Machine) verifyOffsets(e *entry, r VerifyOffsets) int16 {
	t, code := m.verify(e, "TxnOffsetCommit", Client{}, r.Producer)
	if code != none {
		return code
	}
	return verdict(t, OffsetsTopic, r.Partition)
}

func offsetsPartition(p int32) Topics { return Topics{{Name: OffsetsTopic, Partitions: []int32{p}}} }

func topicsOf(ts []kmsg.AddPartitionsToTxnRequestTransactionTopic) Topics {
	out := make([]Topic, len(ts))
	for i, t := range ts {
		out[i] = Topic{Name: t.Topic, Partitions: t.Partitions}
	}
	return state.TopicsOf(out...)
}

func offsetsReply(code int16) Response {
	resp := kmsg.NewPtrAddOffsetsToTxnResponse()
	resp.ErrorCode = code
	return resp
}

// AnswerPartitions says something of each partition, in the order of the request.
func AnswerPartitions(r *kmsg.AddPartitionsToTxnRequestTransaction, code func(topic string, partition int32) int16) *kmsg.AddPartitionsToTxnResponseTransaction {
	resp := kmsg.NewAddPartitionsToTxnResponseTransaction()
	resp.TransactionalID = r.TransactionalID
	for _, t := range r.Topics {
		topic := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: p, ErrorCode: code(t.Topic, p)})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return &resp
}

// AnswerOnce says something of each partition once, whatever the request repeats: Kafka answers
// so where the partitions' codes may differ.
func AnswerOnce(r *kmsg.AddPartitionsToTxnRequestTransaction, code func(topic string, partition int32) int16) *kmsg.AddPartitionsToTxnResponseTransaction {
	once := *r
	once.Topics = nil
	for _, t := range r.Topics {
		i := slices.IndexFunc(once.Topics, func(o kmsg.AddPartitionsToTxnRequestTransactionTopic) bool { return o.Topic == t.Topic })
		if i < 0 {
			i = len(once.Topics)
			once.Topics = append(once.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic})
		}
		o := &once.Topics[i]
		o.Partitions = append(slices.Clip(o.Partitions), t.Partitions...)
		slices.Sort(o.Partitions)
		o.Partitions = slices.Compact(o.Partitions)
	}
	once.Topics = slices.DeleteFunc(once.Topics, func(t kmsg.AddPartitionsToTxnRequestTransactionTopic) bool { return len(t.Partitions) == 0 })
	return AnswerPartitions(&once, code)
}
