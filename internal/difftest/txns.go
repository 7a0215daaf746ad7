//go:build kafka

package difftest

import (
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// txnIDs is how many transactional ids a sequence has; a slot's is its number modulo that.
const txnIDs = 2

// producer is who a transactional id's client was told it is.
type producer struct {
	id    int64
	epoch int16
}

func (s *sequence) txnID(i int) string { return fmt.Sprint(s.prefix, "x", i%txnIDs) }

// pid is a producer id as it is compared.
func (t *target) pid(id int64) string {
	if n, ok := t.pids[id]; ok {
		return "«" + n + "»"
	}
	if id < 100 || id == strangerID {
		return fmt.Sprint(id)
	}
	return "«new pid»"
}

const strangerID = 1 << 50

// learnProducer takes from an answer who a producer is from now on.
func (t *target) learnProducer(o *op, a answer) {
	p := producer{-1, -1}
	switch r := a.resp.(type) {
	case *kmsg.InitProducerIDResponse:
		if r.ErrorCode == 0 {
			p = producer{r.ProducerID, r.ProducerEpoch}
		}
	case *kmsg.EndTxnResponse:
		if r.ErrorCode == 0 {
			p = producer{r.ProducerID, r.ProducerEpoch}
		}
	}
	if p.id < 0 {
		return
	}
	if t.pids[p.id] == "" {
		t.pids[p.id] = fmt.Sprintf("p%d", a.op)
	}
	all := &t.producers[o.slot%txnIDs]
	if n := len(*all); n == 0 || (*all)[n-1] != p {
		*all = append(*all, p)
	}
}

// calm waits until no transaction of the sequence is between decided and complete, where the
// answers are a matter of timing.
func (t *target) calm(prefix string) error {
	nc, err := net.DialTimeout("tcp", t.addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	for i := range txnIDs {
		req.TransactionalIDs = append(req.TransactionalIDs, fmt.Sprint(prefix, "x", i))
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		resp, err := roundTrip(nc, req, encode(req, 0, nil))
		if err != nil {
			return err
		}
		busy := false
		for _, s := range resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			busy = busy || strings.HasPrefix(s.State, "Prepare")
		}
		if !busy {
			return nil
		}
	}
	return fmt.Errorf("%s: a transaction did not become complete", t.addr)
}

// own is mostly who the client is; now and then one it was before, or one that nobody is.
func (d *draw) own() producer {
	all := d.t.producers[d.o.slot%txnIDs]
	p := producer{-1, -1}
	if len(all) > 0 {
		p = all[len(all)-1]
	}
	if d.odd(8) && len(all) > 1 {
		p = all[len(all)-2]
	}
	if d.odd(12) {
		p.epoch += pick[int16](d, 1, -1, 2)
	}
	if d.odd(20) {
		p = pick(d, producer{-1, -1}, producer{-1, p.epoch}, producer{p.id, -1}, producer{strangerID, 0})
	}
	return p
}

// producer is own, or the other transactional id's.
func (d *draw) producer() producer {
	p := d.own()
	if others := d.t.producers[(d.o.slot+1)%txnIDs]; d.odd(20) && len(others) > 0 {
		p = others[len(others)-1]
	}
	return p
}

func (d *draw) transactionalID() string {
	if d.odd(25) {
		return pick(d, d.s.txnID(d.o.slot+1), d.s.prefix+"nobody", "")
	}
	return d.s.txnID(d.o.slot)
}

func (d *draw) init() kmsg.Request {
	r := kmsg.NewPtrInitProducerIDRequest()
	id := d.transactionalID()
	r.TransactionalID, r.TransactionTimeoutMillis = &id, pick[int32](d, 60_000, 60_000, 30_000)
	if d.s.timed {
		r.TransactionTimeoutMillis = shortTransaction
	}
	r.ProducerID, r.ProducerEpoch = -1, -1
	if d.IntN(2) == 0 {
		p := d.producer()
		r.ProducerID, r.ProducerEpoch = p.id, p.epoch
	}
	if d.odd(20) {
		r.TransactionTimeoutMillis = pick[int32](d, 0, -1, 900_000, 900_001)
	}
	return r
}

func (d *draw) addPartitions() kmsg.Request {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	p := d.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = d.transactionalID(), p.id, p.epoch
	for range d.IntN(3) + 1 {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic = pick(d, "dt-a", "dt-b", d.s.topic, d.s.topic, d.s.topic)
		if d.s.remade && d.IntN(2) == 0 {
			t.Topic = d.ownTopic()
		}
		if d.odd(12) {
			t.Topic = pick(d, "dt-missing", "", "__consumer_offsets", "__transaction_state", "__share_group_state")
		}
		for range d.IntN(3) {
			part := int32(0)
			switch t.Topic {
			case "dt-a", d.s.ownName(0), d.s.ownName(1):
				part = d.partition()
			case d.s.topic:
				part = int32(d.IntN(logPartitions))
			}
			t.Partitions = append(t.Partitions, part)
		}
		r.Topics = append(r.Topics, t)
	}
	if d.o.version < 4 {
		return r
	}
	b := kmsg.NewPtrAddPartitionsToTxnRequest()
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = r.TransactionalID, p.id, p.epoch, d.IntN(3) == 0
	for _, t := range r.Topics {
		if !strings.HasPrefix(t.Topic, "__") {
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
	}
	b.Transactions = append(b.Transactions, one)
	if d.IntN(3) == 0 && one.TransactionalID != d.s.txnID(d.o.slot+1) { // another one, which Kafka's brokers ask of in the same request
		b.Transactions = append(b.Transactions, d.verification())
	}
	return b
}

// verification is of the other transactional id.
func (d *draw) verification() kmsg.AddPartitionsToTxnRequestTransaction {
	v := kmsg.NewAddPartitionsToTxnRequestTransaction()
	v.TransactionalID, v.VerifyOnly, v.ProducerID = d.s.txnID(d.o.slot+1), d.IntN(3) > 0, -1
	if others := d.t.producers[(d.o.slot+1)%txnIDs]; len(others) > 0 {
		p := others[len(others)-1]
		v.ProducerID, v.ProducerEpoch = p.id, p.epoch
	}
	v.Topics = append(v.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: "dt-a", Partitions: []int32{d.partition(), int32(d.IntN(4))}},
		kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: d.s.topic, Partitions: []int32{int32(d.IntN(logPartitions))}})
	return v
}

func (d *draw) addOffsets() kmsg.Request {
	r := kmsg.NewPtrAddOffsetsToTxnRequest()
	p := d.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = d.transactionalID(), p.id, p.epoch, d.group()
	return r
}

func (d *draw) txnCommit() kmsg.Request {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	p := d.own() // with a transactional id that is the producer's: Kafka does not look at it where the partition has seen the producer
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = d.s.txnID(d.o.slot), p.id, p.epoch, d.group()
	r.Generation, r.MemberID = -1, ""
	if d.IntN(2) == 0 {
		r.Generation, r.MemberID, r.InstanceID = d.generation(), d.member(), d.instance()
	}
	c := d.commit().(*kmsg.OffsetCommitRequest)
	for _, ct := range c.Topics {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.TopicID = ct.Topic, ct.TopicID
		for _, cp := range ct.Partitions {
			t.Partitions = append(t.Partitions, kmsg.TxnOffsetCommitRequestTopicPartition{
				Partition: cp.Partition, Offset: cp.Offset, LeaderEpoch: cp.LeaderEpoch, Metadata: cp.Metadata,
			})
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func (d *draw) endTxn() kmsg.Request {
	r := kmsg.NewPtrEndTxnRequest()
	p := d.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = d.transactionalID(), p.id, p.epoch, d.IntN(3) > 0
	return r
}

func (d *draw) describeTxns() kmsg.Request {
	r := kmsg.NewPtrDescribeTransactionsRequest()
	r.TransactionalIDs = []string{d.s.txnID(0), d.s.txnID(1)}
	if d.odd(4) {
		r.TransactionalIDs = append(r.TransactionalIDs, d.transactionalID(), "")
	}
	return r
}

func (d *draw) listTxns() kmsg.Request {
	r := kmsg.NewPtrListTransactionsRequest()
	r.DurationFilterMillis = pick[int64](d, -1, -1, -2, 1<<40, 1<<50, math.MaxInt64) // what just began is a matter of timing
	if d.odd(4) {
		p := d.s.prefix + pick(d, ".*", "x0", "x[01]|", "x", "(")
		r.TransactionalIDPattern = &p
	}
	for range pick(d, 0, 0, 1, 2) {
		r.StateFilters = append(r.StateFilters, pick(d, "Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "ongoing", "junk", ""))
	}
	for range pick(d, 0, 0, 1, 2) {
		r.ProducerIDFilters = append(r.ProducerIDFilters, d.producer().id)
	}
	return r
}
