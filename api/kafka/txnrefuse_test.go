package kafka

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
)

func towardsKafka(o *Options, _ *coordinator.Options) { o.Embedded = false }

// whole gives a batch its length.
func whole(batch []byte) []byte {
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	return batch
}

// producing is a client that has begun as producer p of id x, a topic "t", and a broker.
func producing(t *testing.T) (c *client, topic [16]byte, x string, p *kmsg.InitProducerIDResponse, b *broker) {
	s := withNode(t, towardsKafka)
	topic, c, x = s.topic("t"), s.client(), "x"
	p = begin(c, x)
	return c, topic, x, p, s.fakeBroker(t)
}

// Of a Produce of two producers nothing is written, whatever else is wrong with it.
func TestProduceOfTwoProducers(t *testing.T) {
	c, id, x, p, b := producing(t)
	other := begin(c, "y")
	for _, v := range []int16{3, 9, 12, 13} {
		req := produce(&x, records(p, true), to("t", id, 0, 1, 77), to("nowhere", [16]byte{9}, 0))
		req.Topics[0].Partitions[1].Records = records(other, true)
		n := 0
		for _, at := range do[*kmsg.ProduceResponse](c, v, req).Topics {
			for _, q := range at.Partitions {
				n++
				if q.ErrorCode != 49 || v >= 8 && q.ErrorMessage == nil {
					t.Errorf("v%d: %+v", v, q)
				}
			}
		}
		if n != 4 {
			t.Errorf("v%d: %d partitions are answered", v, n)
		}
	}
	if got, _ := b.last(); got != nil {
		t.Errorf("the broker got %+v", got)
	}
	if d := describe(c, x); d.State != "Empty" {
		t.Errorf("%+v", d)
	}
}

// One of another producer that does not exist changes nothing: the broker says so.
func TestProduceOfAnotherProducerToNowhere(t *testing.T) {
	c, id, x, p, b := producing(t)
	req := produce(&x, records(p, true), to("t", id, 0, 77))
	req.Topics[0].Partitions[1].Records = records(begin(c, "y"), true)
	do[*kmsg.ProduceResponse](c, 12, req)
	if got, _ := b.last(); got == nil || len(got.Topics[0].Partitions) != 2 {
		t.Errorf("the broker got %+v", got)
	}
}

// Without an answer the connection ends also where only a part was refused; the rest is written.
func TestSilentProduceRefusedInPart(t *testing.T) {
	c, id, x, p, b := producing(t)
	do[*kmsg.AddPartitionsToTxnResponse](c, 3, addOf(p, x, kmsg.AddPartitionsToTxnRequestTopic{Topic: "t", Partitions: []int32{0}}))
	req := produce(&x, records(p, true), to("t", id, 0, 1))
	req.Acks = 0
	c.send(11, req)
	c.closed()
	b.hangUp() // what it reads, it has read now
	if got, _ := b.last(); got == nil || len(got.Topics[0].Partitions) != 1 || got.Topics[0].Partitions[0].Partition != 0 {
		t.Errorf("the broker got %+v", got)
	}
}

// Records that no broker takes are not of a transaction: it says what is wrong, and gets them as they are.
func TestProduceOfWhatTheBrokerRefuses(t *testing.T) {
	c, id, x, p, b := producing(t)
	two := slices.Concat(whole(records(p, true)), whole(records(p, true)))
	nobody := whole(records(&kmsg.InitProducerIDResponse{ProducerID: -1, ProducerEpoch: -1}, true))
	for _, recs := range [][]byte{two, nobody} {
		for _, v := range []int16{11, 12} {
			do[*kmsg.ProduceResponse](c, v, produce(&x, recs, to("t", id, 0)))
			if got, _ := b.last(); got == nil || !slices.Equal(got.Topics[0].Partitions[0].Records, recs) {
				t.Fatalf("v%d: the broker got %+v", v, got)
			}
		}
	}
	if d := describe(c, x); d.State != "Empty" {
		t.Errorf("%+v", d)
	}
	// Half a batch behind a whole one is left out of account, there and here.
	half := slices.Concat(whole(records(p, true)), whole(records(p, true))[:60])
	if got := do[*kmsg.ProduceResponse](c, 11, produce(&x, half, to("t", id, 0))); got.Topics[0].Partitions[0].ErrorCode != 120 {
		t.Errorf("%+v", got)
	}
}

// A partition that is named more than once is what was said of it last.
func TestProduceOfAPartitionTwice(t *testing.T) {
	c, id, x, p, b := producing(t)
	for _, plainLast := range []bool{false, true} {
		for _, v := range []int16{9, 13} {
			req := produce(&x, records(p, true), to("t", id, 0), to("t", id, 1, 0), to("", [16]byte{9}, 0, 0))
			last := &req.Topics[1].Partitions[1]
			if v < topicIDs {
				req.Topics = req.Topics[:2]
			}
			if last.Records = records(p, !plainLast); plainLast {
				req.Topics[0].Partitions[0].Records = records(begin(c, "y"), true) // of another producer
			}
			n := 0
			for _, at := range do[*kmsg.ProduceResponse](c, v, req).Topics {
				n += len(at.Partitions)
			}
			if want := 2 + int(v/topicIDs); n != want {
				t.Errorf("v%d, plain last: %t: %d partitions are answered, want %d", v, plainLast, n, want)
			}
			got, _ := b.last()
			if wrote := v >= addedByBroker || plainLast; wrote != (got != nil && slices.ContainsFunc(got.Topics, func(t kmsg.ProduceRequestTopic) bool {
				return slices.ContainsFunc(t.Partitions, func(p kmsg.ProduceRequestTopicPartition) bool { return slices.Equal(p.Records, last.Records) })
			})) {
				t.Errorf("v%d, plain last: %t: the broker got %+v", v, plainLast, got)
			}
		}
	}
}

// Of which nobody has asked whether it may be written does not come to a broker: it may take that where the last is wrong.
func TestProduceOfAPartitionTwiceWrong(t *testing.T) {
	c, id, x, p, b := producing(t)
	req := produce(&x, whole(records(p, true)), to("t", id, 0, 0))
	wrong := slices.Concat(whole(records(p, true)), whole(records(p, true)))
	req.Topics[0].Partitions[1].Records = wrong
	do[*kmsg.ProduceResponse](c, 11, req)
	if got, _ := b.last(); got == nil || len(got.Topics[0].Partitions) != 1 || !slices.Equal(got.Topics[0].Partitions[0].Records, wrong) {
		t.Errorf("the broker got %+v", got)
	}
}

// A code that hides why comes with what it was.
func TestProduceSaysWhy(t *testing.T) {
	s := withNode(t, towardsKafka)
	id := s.topic("t")
	c := s.client()
	x := "x"
	p := begin(c, x)
	at := do[*kmsg.ProduceResponse](c, 10, produce(&x, records(p, true), to("t", id, 0))).Topics[0].Partitions[0]
	if at.ErrorCode != 48 || at.ErrorMessage == nil || *at.ErrorMessage != "Partition was not added to the transaction" {
		t.Errorf("%+v", at)
	}
	s = newStage(t, yes) // no transaction can be asked about
	id = s.topic("t")
	at = do[*kmsg.ProduceResponse](s.client(), 11, produce(&x, records(p, true), to("t", id, 0))).Topics[0].Partitions[0]
	want := "Unable to verify the partition has been added to the transaction. Underlying error: COORDINATOR_LOAD_IN_PROGRESS"
	if at.ErrorCode != 19 || at.ErrorMessage == nil || *at.ErrorMessage != want {
		t.Errorf("%+v", at)
	}
}
