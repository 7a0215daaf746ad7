package kafka

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// A broker asks its own coordinator about a transactional Produce (KIP-890): up to version 11
// whether its partitions are in the transaction, from 12 on to add them. That coordinator knows
// nothing of the transaction. So both is done here, the first in the place of the broker's
// transaction.partition.verification.enable, which must be off, and what the broker gets is of a
// version with which it leaves the transaction to the client.
//
//	the client sends    here it is    Kafka gets                         the embedded broker gets
//	3–11                verified      as it is                           12: it takes up partitions that it does not know from that on
//	12                  added         11, which is the same              as it is
//	13                  added         11, with topics' names for ids     as it is
//
// Without this a request that comes late, after its transaction has ended, would open one that nobody
// ends: consumers of committed records would wait there for ever.
//
// The records are not looked at, but for who their producer is; the answer is turned back.
const (
	addedByClient = 11 // the last version before which AddPartitionsToTxn comes
	addedByBroker = 12
	topicIDs      = 13
)

// versionBehind is the version in which the broker gets a transactional Produce.
func (s *Server) versionBehind(version int16) int16 {
	if s.o.Embedded {
		return max(version, addedByBroker)
	}
	return min(version, addedByClient)
}

// produced is a transactional Produce on its way to the broker in another shape.
type produced struct {
	version int16 // that the broker got
	ids     map[string][16]byte
	failed  []unproduced
	repeats bool   // it named a partition more than once, and does not any more
	arrived func() // is called when what is let through is written, or nobody can tell any more
}

// passTransactional passes a transactional Produce of n bytes on.
func (c *conn) passTransactional(a *api, h *header, n int, what verdict) error {
	b, err := c.gather(a, h, n)
	if err != nil {
		return err
	}
	c.clientID = intern(c.clientID, h.clientID)
	req := kmsg.NewPtrProduceRequest()
	req.Version = h.version
	if err := req.ReadFrom(b[h.size:]); err != nil || req.TransactionID == nil {
		return errMalformed
	}
	p := &produced{version: c.srv.versionBehind(h.version), ids: map[string][16]byte{}}
	defer func() {
		if p.arrived != nil { // nobody waits for the broker's answer
			p.arrived()
		}
	}()
	if err := c.joinTxn(h.version, req, p); err != nil {
		return err
	}
	if p.version == h.version && p.failed == nil && !p.repeats {
		return c.passAs(a, h, n, what, p)
	}
	c.srv.m.request(a.key, h.version, n)
	if err := c.produceBehind(a, h, req, p); err != nil {
		return err
	}
	c.in.skip(n)
	return nil
}

// produceBehind sends what is left of a request to the broker, or answers it when nothing is.
func (c *conn) produceBehind(a *api, h *header, req *kmsg.ProduceRequest, p *produced) error {
	if len(req.Topics) == 0 && len(p.failed) > 0 {
		if req.Acks == 0 { // there is no answer that could tell
			return errRefused
		}
		k, err := c.begin(a, h, 0, false)
		if err != nil {
			return err
		}
		k.done(k.producedNothing(p))
		c.handed(k)
		return c.await(k)
	}
	if c.up == nil {
		if err := c.connect(); err != nil {
			return err
		}
	}
	var k *call // nil: it has no answer
	if req.Acks != 0 {
		var err error
		if k, err = c.begin(a, h, 0, true); err != nil {
			return err
		}
		k.produced = p
		k.awaits(p)
	}
	for i := range req.Topics { // by name or by id, as the version has it
		t := &req.Topics[i]
		if id, has := p.ids[t.Topic]; has {
			t.TopicID = id
		}
	}
	req.Version = p.version
	if _, err := c.up.nc.Write(appendProduce(h, req)); err != nil {
		c.withdraw(k)
		return upstreamError(err)
	}
	if req.Acks == 0 && len(p.failed) > 0 { // the rest is written, as in Kafka, and nothing says what is not
		return errRefused
	}
	return nil
}

func appendProduce(h *header, req *kmsg.ProduceRequest) []byte {
	size := 256 + len(h.clientID)
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			size += len(req.Topics[i].Partitions[j].Records) + 64
		}
	}
	out := make([]byte, 4, size)
	out = kbin.AppendInt16(out, req.Key())
	out = kbin.AppendInt16(out, req.Version)
	out = kbin.AppendInt32(out, h.correlation)
	out = kbin.AppendInt16(out, int16(len(h.clientID)))
	out = append(out, h.clientID...)
	if req.IsFlexible() {
		out = append(out, 0)
	}
	out = req.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// joinTxn adds what a request is about to write to its transaction, or verifies that it is part of
// that. What may not be written is taken out of it.
func (c *conn) joinTxn(version int16, req *kmsg.ProduceRequest, p *produced) error {
	if withoutRecords(req) { // a broker fails on that, and writes nothing of it
		return nil
	}
	p.repeats = lastOfEach(req)
	there := c.nameTopics(version, req, p)
	var topics []txn.Topic
	producer, some := txn.Producer{}, false
	for i := range req.Topics {
		t := &req.Topics[i]
		at := txn.Topic{Name: t.Topic}
		for j := range t.Partitions {
			who, is := producerOf(t.Partitions[j].Records)
			// What does not exist gets no marker: the broker will say so.
			if !is || !there.has(t.Topic, t.Partitions[j].Partition) {
				continue
			}
			if some && who != producer {
				p.refuseAll(version, req)
				return nil
			}
			producer, some = who, true
			at.Partitions = append(at.Partitions, t.Partitions[j].Partition)
		}
		if at.Partitions != nil {
			topics = append(topics, at)
		}
	}
	if !some {
		return nil
	}
	ask := c.addImplicit
	if version < addedByBroker {
		ask = c.verify
	}
	codes, err := ask(p, *req.TransactionID, producer, topics)
	if err != nil {
		return err
	}
	p.refuse(version, req, func(topic string, at *kmsg.ProduceRequestTopicPartition) int16 {
		if !there.has(topic, at.Partition) {
			return 0
		}
		return c.turns.take(topic, at, producer, codes(topic, at.Partition))
	})
	return nil
}

// lastOfEach leaves of a partition that a request names more than once what it says last, and says whether there was one. A
// broker answers that alone, and mostly writes that alone: of others, were they to get there, nobody would have asked.
func lastOfEach(req *kmsg.ProduceRequest) (repeats bool) {
	type at struct {
		topic     string
		id        [16]byte
		partition int32
	}
	again := map[at]int{} // how often it is still to come
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			again[at{t.Topic, t.TopicID, t.Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.ProduceRequestTopicPartition) bool {
			here := at{t.Topic, t.TopicID, p.Partition}
			again[here]--
			repeats = repeats || again[here] > 0
			return again[here] > 0
		})
	}
	req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool { return len(t.Partitions) == 0 })
	return repeats
}

// withoutRecords says whether a partition's records are null.
func withoutRecords(req *kmsg.ProduceRequest) bool {
	return slices.ContainsFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool {
		return slices.ContainsFunc(t.Partitions, func(p kmsg.ProduceRequestTopicPartition) bool { return p.Records == nil })
	})
}

// nameTopics finds the topics of a request, by name or by id, and names them. What has an
// id that nobody knows is taken out.
func (c *conn) nameTopics(version int16, req *kmsg.ProduceRequest, p *produced) *lookup {
	there := c.srv.newLookup()
	for i := range req.Topics {
		t := &req.Topics[i]
		parts := make([]int32, len(t.Partitions))
		for j := range t.Partitions {
			parts[j] = t.Partitions[j].Partition
		}
		if version >= topicIDs {
			there.id(t.TopicID, parts...)
		} else {
			there.name(t.Topic, parts...)
		}
	}
	there.ask(c.context())
	if version < topicIDs {
		return there
	}
	req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool {
		if there.byID[t.TopicID] != nil {
			return false
		}
		for j := range t.Partitions {
			p.failed = append(p.failed, unproduced{failure: failure{id: t.TopicID, partition: t.Partitions[j].Partition, code: codeUnknownTopicID}})
		}
		return true
	})
	for i := range req.Topics {
		t := &req.Topics[i]
		known := there.byID[t.TopicID]
		t.Topic = known.Name
		there.byName[known.Name] = known
		p.ids[known.Name] = t.TopicID
	}
	return there
}

// producerOf is whose transaction a partition's records are of, if they are of one. They are in
// one batch, since version 3: its header says it. Of several the broker takes none.
func producerOf(records []byte) (p txn.Producer, transactional bool) {
	const magic, attributes, id, epoch, end = 16, 21, 43, 51, 53
	if len(records) < end || records[magic] != 2 || binary.BigEndian.Uint16(records[attributes:])&0x10 == 0 {
		return p, false
	}
	p = txn.Producer{
		ID:    txn.ProducerID(binary.BigEndian.Uint64(records[id:])),
		Epoch: txn.Epoch(binary.BigEndian.Uint16(records[epoch:])),
	}
	return p, p.ID >= 0 && !severalBatches(records)
}

// severalBatches says whether a whole batch follows the first.
func severalBatches(records []byte) bool {
	size := func(b []byte) int64 { // with what precedes it; longer than b where b is no whole batch
		const length, from, least = 8, 12, 17
		if len(b) < least || int32(binary.BigEndian.Uint32(b[length:])) < least-from {
			return int64(len(b)) + 1
		}
		return from + int64(binary.BigEndian.Uint32(b[length:]))
	}
	first := size(records)
	if first > int64(len(records)) {
		return false
	}
	rest := records[first:]
	return size(rest) <= int64(len(rest))
}

// verdicts are the codes of partitions.
type verdicts func(topic string, partition int32) int16

func (c *conn) addImplicit(p *produced, id string, producer txn.Producer, topics []txn.Topic) (verdicts, error) {
	resp, err := c.setOut(p, producer, txn.AddImplicit{Client: c.client(), TransactionalID: id, Producer: producer, Topics: topics})
	if err != nil {
		return nil, err
	}
	return func(string, int32) int16 { return resp.(txn.Result).Code }, nil
}

func (c *conn) verify(p *produced, id string, producer txn.Producer, topics []txn.Topic) (verdicts, error) {
	t := kmsg.NewAddPartitionsToTxnRequestTransaction()
	t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = id, int64(producer.ID), int16(producer.Epoch), true
	for _, at := range topics {
		t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: at.Name, Partitions: at.Partitions})
	}
	resp, err := c.setOut(p, producer, txn.AddPartitions{Client: c.client(), AddPartitionsToTxnRequestTransaction: &t, Broker: true})
	if err != nil {
		return nil, err
	}
	if r, failed := resp.(txn.Result); failed {
		return func(string, int32) int16 { return r.Code }, nil
	}
	codes := map[markerAt]int16{}
	for _, at := range resp.(*kmsg.AddPartitionsToTxnResponseTransaction).Topics {
		for _, p := range at.Partitions {
			codes[markerAt{topic: at.Topic, partition: p.Partition}] = p.ErrorCode
		}
	}
	return func(topic string, partition int32) int16 { return codes[markerAt{topic: topic, partition: partition}] }, nil
}

// relayProduced turns the broker's answer into one of the client's version.
func (c *conn) relayProduced(k *call, buf *[]byte, n int) error {
	b, err := c.up.in.ahead(n)
	if err != nil {
		return err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = k.produced.version
	if resp.IsFlexible() {
		if len(b) == 0 || b[0] != 0 {
			return errMismatch
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(bytes.Clone(b)); err != nil {
		return errMismatch
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if k.produced.version >= topicIDs {
			t.Topic = ""
		} else if id, has := k.produced.ids[t.Topic]; has && k.version >= topicIDs {
			t.Topic, t.TopicID = "", id
		}
	}
	k.produced.addFailed(k, resp)
	c.ownEndpoints(resp)
	c.up.in.skip(n)
	resp.Version = k.version
	*buf = k.appendResponse(*buf, resp)
	return nil
}

// ownEndpoints has clients of a gateway told where they find brokers.
func (c *conn) ownEndpoints(resp *kmsg.ProduceResponse) {
	if c.srv.o.Gateway == nil {
		return
	}
	local := c.localHost()
	resp.Brokers = slices.DeleteFunc(resp.Brokers, func(b kmsg.ProduceResponseBroker) bool {
		_, ok := c.srv.o.Gateway.address(b.NodeID, local)
		return !ok
	})
	for i := range resp.Brokers {
		at, _ := c.srv.o.Gateway.address(resp.Brokers[i].NodeID, local)
		resp.Brokers[i].Host, resp.Brokers[i].Port = at.Host, int32(at.Port)
	}
}
