package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

func addOf(p *kmsg.InitProducerIDResponse, id string, topics ...kmsg.AddPartitionsToTxnRequestTopic) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Topics = id, p.ProducerID, p.ProducerEpoch, topics
	return req
}

// A client adds no partition of an internal topic, and then nothing of what it names.
func TestNoClientAddsInternalTopics(t *testing.T) {
	s := withNode(t)
	s.topic("t")
	c := s.client()
	p := begin(c, "x")
	for v := int16(0); v <= 3; v++ {
		for _, internal := range []string{"__consumer_offsets", "__transaction_state", "__share_group_state"} {
			got := do[*kmsg.AddPartitionsToTxnResponse](c, v, addOf(p, "x",
				kmsg.AddPartitionsToTxnRequestTopic{Topic: "t", Partitions: []int32{0, 0}},
				kmsg.AddPartitionsToTxnRequestTopic{Topic: internal, Partitions: []int32{0}}))
			want := "t[{0 55}]" + internal + "[{0 29}]"
			if shown := shownAdded(got.Topics); shown != want {
				t.Errorf("v%d: %s, not %s", v, shown, want)
			}
		}
	}
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{"x"}
	if got := do[*kmsg.DescribeTransactionsResponse](c, 0, describe); got.TransactionStates[0].State != "Empty" {
		t.Errorf("%+v", got)
	}
}

func shownAdded(topics []kmsg.AddPartitionsToTxnResponseTopic) (s string) {
	for _, t := range topics {
		s += t.Topic + "["
		for _, p := range t.Partitions {
			s += fmt.Sprintf("{%d %d}", p.Partition, p.ErrorCode)
		}
		s += "]"
	}
	return s
}

// Where partitions are only looked at, each is answered once, as Kafka's map of them is.
func TestVerifyAnswersOnce(t *testing.T) {
	s := withNode(t, func(o *Options, _ *coordinator.Options) { o.Embedded = false })
	s.topic("t")
	c := s.client()
	p := begin(c, "x")
	if got := do[*kmsg.AddPartitionsToTxnResponse](c, 3, addOf(p, "x", kmsg.AddPartitionsToTxnRequestTopic{Topic: "t", Partitions: []int32{0}})); got.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{{
		TransactionalID: "x", ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch, VerifyOnly: true,
		Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "t", Partitions: []int32{1, 0}}, {Topic: "t", Partitions: []int32{0}}},
	}}
	got := do[*kmsg.AddPartitionsToTxnResponse](c, 5, req).Transactions[0]
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 2 || got.Topics[0].Partitions[0].ErrorCode != 0 || got.Topics[0].Partitions[1].ErrorCode != 120 {
		t.Errorf("%+v", got)
	}
}

// Producers that are initialised one after the other on a connection need not wait for each
// other's answer to be durable: each gets the next epoch all the same, in order.
func TestInitsInARow(t *testing.T) {
	s := withNode(t)
	c := s.client()
	x := "x"
	p := begin(c, x)
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &x, 60_000, -1, -1
	const n = 500
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range n {
			c.send(5, req)
		}
	}()
	for i := range n {
		corr, body, err := c.raw()
		if err != nil {
			t.Fatal(err)
		}
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.Version = 5
		if err := resp.ReadFrom(body[1:]); err != nil {
			t.Fatal(err)
		}
		if resp.ErrorCode != 0 || resp.ProducerID != p.ProducerID || int(resp.ProducerEpoch) != i+1 {
			t.Fatalf("answer %d: %+v", corr, resp)
		}
	}
	<-sent
}

// A topic that a commit names twice is answered as one where anything failed, and else as it was asked.
func TestTxnCommitTopicTwice(t *testing.T) {
	s := withNode(t, func(_ *Options, o *coordinator.Options) { o.Group.LegacyTxnCommit = group.AllowLegacy })
	id := s.topic("t")
	c := s.client()
	p := begin(c, "x")
	for _, tc := range []struct {
		parts [][]int32
		want  string
	}{
		{[][]int32{{0, 7}, {1, 8}}, "7:3 8:3 0:0 1:0; "},
		{[][]int32{{0}, {1}}, "0:0; 1:0; "},
	} {
		for v := int16(5); v <= 6; v++ {
			req := kmsg.NewPtrTxnOffsetCommitRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = "x", p.ProducerID, p.ProducerEpoch, "g", -1
			for _, parts := range tc.parts {
				topic := kmsg.TxnOffsetCommitRequestTopic{Topic: "t", TopicID: id}
				for _, n := range parts {
					topic.Partitions = append(topic.Partitions, kmsg.TxnOffsetCommitRequestTopicPartition{Partition: n, Offset: 5})
				}
				req.Topics = append(req.Topics, topic)
			}
			shown := ""
			for _, topic := range do[*kmsg.TxnOffsetCommitResponse](c, v, req).Topics {
				for i, n := range topic.Partitions {
					if i > 0 {
						shown += " "
					}
					shown += fmt.Sprintf("%d:%d", n.Partition, n.ErrorCode)
				}
				shown += "; "
			}
			if shown != tc.want {
				t.Errorf("v%d: %s, not %s", v, shown, tc.want)
			}
		}
	}
}
