//go:build kafka

package difftest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// logPartitions is how many partitions a sequence's own topic has.
const logPartitions = 3

// log is where a producer writes: each epoch numbers the records of a partition from 0 on.
type log struct {
	producer
	topic     string
	partition int32
}

// batch is records of one producer for one partition.
type batch struct {
	producer
	first         int32 // sequence number
	at            time.Time
	values        []string
	transactional bool
	control       bool
	broken        bool
}

func (b batch) encode() []byte {
	rb := kmsg.RecordBatch{
		Magic: 2, LastOffsetDelta: int32(len(b.values) - 1), FirstTimestamp: b.at.UnixMilli(), ProducerID: b.id, ProducerEpoch: b.epoch,
		FirstSequence: b.first, NumRecords: int32(len(b.values)), PartitionLeaderEpoch: -1,
	}
	if rb.MaxTimestamp = rb.FirstTimestamp; b.transactional {
		rb.Attributes |= 0x10
	}
	if b.control {
		rb.Attributes |= 0x20
	}
	for i, v := range b.values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: []byte(v)}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // the length itself takes a byte: values are short
		rb.Records = r.AppendTo(rb.Records)
	}
	const length, from, crc, attributes = 8, 12, 17, 21
	raw := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[length:], uint32(len(raw)-from))
	sum := crc32.Checksum(raw[attributes:], crc32.MakeTable(crc32.Castagnoli))
	if b.broken {
		sum++
	}
	binary.BigEndian.PutUint32(raw[crc:], sum)
	return raw
}

// batches are what bytes in a request or from a log hold, as they are compared: not when they were
// written, nor by which epoch of a coordinator.
func (t *target) batches(raw []byte) string {
	var out string
	for len(raw) > 0 {
		var rb kmsg.RecordBatch
		if err := rb.ReadFrom(raw); err != nil || int(rb.Length)+12 > len(raw) {
			return out + fmt.Sprintf("<%d bytes>", len(raw))
		}
		raw = raw[rb.Length+12:]
		out += fmt.Sprintf("<%d %s/%d", rb.FirstOffset, t.pid(rb.ProducerID), rb.ProducerEpoch)
		if rb.ProducerID >= 0 {
			out += fmt.Sprintf(" from %d", rb.FirstSequence)
		}
		if rb.Attributes&0x10 != 0 {
			out += " txn"
		}
		for records := rb.Records; len(records) > 0; {
			var r kmsg.Record
			if err := r.ReadFrom(records); err != nil || int(r.Length) >= len(records) {
				out += " ?"
				break
			}
			records = records[r.Length+1:]
			if rb.Attributes&0x20 != 0 && len(r.Key) == 4 {
				out += []string{" abort", " commit"}[r.Key[3]&1]
				continue
			}
			out += fmt.Sprintf(" %q", r.Value)
		}
		out += ">"
	}
	return out
}

// next is the sequence number that a producer's client gives its next record.
func (d *draw) next(p producer, topic string, partition int32) int32 {
	n := d.t.sequences[log{p, topic, partition}]
	if d.odd(12) {
		return max(n+pick[int32](d, 1, -1, 5), 0)
	}
	if d.odd(15) {
		return 0
	}
	return n
}

// produce writes records, mostly as part of the transaction.
func (d *draw) produce() kmsg.Request {
	r := kmsg.NewPtrProduceRequest()
	r.TransactionID, r.Acks, r.TimeoutMillis = kmsg.StringPtr(d.s.txnID(d.o.slot)), -1, 5000
	if d.odd(10) {
		r.Acks = pick[int16](d, 1, 0, 0, 2)
	}
	if d.odd(15) {
		r.TransactionID = pick(d, nil, nil, kmsg.StringPtr(d.s.txnID(d.o.slot+1)), kmsg.StringPtr(d.s.prefix+"nobody"), kmsg.StringPtr(""))
	}
	p, first := d.own(), d.IntN(logPartitions)
	d.honest = d.honest || r.Acks == 0 // else nobody knows what of it was written
	for i := range 1 + d.IntN(2) {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = d.s.topic
		if i > 0 {
			t.Topic = pick(d, "dt-missing", "__consumer_offsets")
			if !d.odd(6) {
				break
			}
		}
		if t.TopicID = d.t.ids[t.Topic]; d.odd(25) {
			t.TopicID = pick(d, [16]byte{}, [16]byte{1, 2, 3})
		}
		for j := range 1 + d.IntN(2) {
			at := kmsg.NewProduceRequestTopicPartition()
			if at.Partition = int32((first + j) % logPartitions); d.odd(12) {
				at.Partition = pick[int32](d, -1, logPartitions)
			}
			at.Records = d.records(p, t.Topic, at.Partition)
			t.Partitions = append(t.Partitions, at)
		}
		r.Topics = append(r.Topics, t)
	}
	if d.odd(30) { // the same: of records for one partition, of which the last are no records, Kafka writes the others
		r.Topics = append(r.Topics, r.Topics[0])
	}
	return r
}

func (d *draw) records(p producer, topic string, partition int32) []byte {
	if d.odd(40) {
		return []byte{} // Kafka never answers a request with null
	}
	if others := d.t.producers[(d.o.slot+1)%txnIDs]; d.odd(25) && len(others) > 0 {
		p = others[len(others)-1]
	}
	// Plain records of an epoch that nobody was given keep out the markers of those that were, for ever.
	b := batch{producer: p, at: d.s.began, transactional: !d.odd(15) || !d.t.given(p), first: d.next(p, topic, partition), control: d.odd(50), broken: d.odd(40)}
	for i := range 1 + d.IntN(2) {
		b.values = append(b.values, fmt.Sprintf("%x.%d.%d", d.o.seed%0xfff, partition, i))
	}
	if d.odd(30) {
		b.producer, b.first, b.transactional = producer{-1, -1}, -1, false
	}
	raw := b.encode()
	if d.odd(40) {
		raw = append(raw, raw...)
	}
	return raw
}

// given says whether somebody was told to be that producer.
func (t *target) given(p producer) bool {
	return slices.ContainsFunc(t.producers[:], func(of []producer) bool { return slices.Contains(of, p) })
}

// learnSequences takes from an answer which records have been written.
func (t *target) learnSequences(a answer) {
	req, is := a.req.(*kmsg.ProduceRequest)
	resp, _ := a.resp.(*kmsg.ProduceResponse)
	if !is || resp == nil {
		return
	}
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if rp.ErrorCode != 0 {
				continue
			}
			t.wrote(req, rt.Topic, rt.TopicID, rp.Partition)
		}
	}
}

func (t *target) wrote(req *kmsg.ProduceRequest, topic string, id [16]byte, partition int32) {
	for _, qt := range req.Topics {
		if req.Version < 13 && qt.Topic != topic || req.Version >= 13 && qt.TopicID != id {
			continue
		}
		for _, qp := range qt.Partitions {
			var rb kmsg.RecordBatch
			if qp.Partition != partition || rb.ReadFrom(qp.Records) != nil {
				continue
			}
			at := log{producer{rb.ProducerID, rb.ProducerEpoch}, qt.Topic, partition}
			t.sequences[at] = max(t.sequences[at], rb.FirstSequence+rb.NumRecords)
		}
	}
}

// silent says whether a request has no answer. What is sent behind it then says that it was taken, or the
// connection ends.
func silent(req kmsg.Request) bool {
	p, is := req.(*kmsg.ProduceRequest)
	return is && p.Acks == 0
}

// behind is a request that goes the way of a Produce, so that it is answered after that.
func behind() kmsg.Request {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version = 1
	return r
}

// firstUnknown says whether Kafka alone refused a sequence number, since it had refused an earlier one, or none had been
// written: the broker behind kcoord, which verifies nothing, takes any from a producer that it does not know.
func (s *sequence) firstUnknown(n int) bool {
	req, is := s.got[0][n].req.(*kmsg.ProduceRequest)
	if !is || req.TransactionID == nil {
		return false
	}
	if silent(req) { // it hangs up then
		return s.got[0][n].err != nil && s.got[1][n].err == nil && numbered(req)
	}
	return slices.Contains(produced(s.got[0][n]), kerr.OutOfOrderSequenceNumber.Code) && !slices.Contains(produced(s.got[1][n]), kerr.OutOfOrderSequenceNumber.Code)
}

// numbered says whether records are not their producer's first.
func numbered(req *kmsg.ProduceRequest) bool {
	return slices.ContainsFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool {
		return slices.ContainsFunc(t.Partitions, func(p kmsg.ProduceRequestTopicPartition) bool {
			var b kmsg.RecordBatch
			return b.ReadFrom(p.Records) == nil && b.FirstSequence > 0
		})
	})
}

// refusedBefore says whether Kafka refused an epoch before it asked the coordinator, and kcoord after, whatever that said: there
// was a later epoch in the partition than the coordinator knows.
func (s *sequence) refusedBefore(n int) bool {
	var took [2]int
	for j := range took {
		for _, code := range produced(s.got[j][n]) {
			if code == 0 {
				took[j]++
			}
		}
	}
	return slices.Contains(produced(s.got[0][n]), kerr.InvalidProducerEpoch.Code) && took[0] == took[1]
}

// unlooked says whether Kafka took records under a transactional id that is not their producer's: it does not look at that where the
// partition has the transaction.
func (s *sequence) unlooked(n int) bool {
	here := produced(s.got[1][n])
	return slices.Contains(produced(s.got[0][n]), 0) &&
		(slices.Contains(here, kerr.InvalidProducerIDMapping.Code) || slices.Contains(here, kerr.InvalidRequest.Code))
}

// produced are the codes of a Produce's answer, in order.
func produced(a answer) (codes []int16) {
	r, _ := a.resp.(*kmsg.ProduceResponse)
	if r == nil {
		return nil
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	slices.Sort(codes)
	return codes
}
