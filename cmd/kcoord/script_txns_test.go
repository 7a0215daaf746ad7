package main

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Of scripts about transactions:
//
//	begin ID TOPIC      begins a transaction at $KAFKA, writes a record to partition 0, and leaves it open
//	pending ID GROUP TOPIC  begins a transaction and leaves an offset of the group pending in it
//	takeover ID         has another producer take over the id

func beginTxn(ts *testscript.TestScript, _ bool, args []string) {
	c := client(ts, kgo.TransactionalID(unquoted(ts, args[0])), kgo.ClientID("payer"))
	ts.Defer(c.Close)
	ts.Check(c.BeginTransaction())
	ts.Check(c.ProduceSync(context.Background(), &kgo.Record{Topic: args[1], Value: []byte("v")}).FirstErr())
	id, epoch, err := c.ProducerID(context.Background())
	ts.Check(err)
	ts.Setenv("PRODUCER", fmt.Sprint(id))
	ts.Setenv("EPOCH", fmt.Sprint(epoch))
}

func pendingOffset(ts *testscript.TestScript, _ bool, args []string) {
	id, group, topic := args[0], args[1], args[2]
	ctx := context.Background()
	c := client(ts, kgo.TransactionalID(id))
	ts.Defer(c.Close)
	producer, epoch, err := c.ProducerID(ctx)
	ts.Check(err)
	topics, err := kadm.NewClient(c).ListTopics(ctx, topic)
	ts.Check(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = id, producer, epoch, group
	added, err := add.RequestWith(ctx, c)
	ts.Check(err)
	ts.Check(kerr.ErrorForCode(added.ErrorCode))
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = id, producer, epoch, group, -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, TopicID: topics[topic].ID, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{LeaderEpoch: -1}}}}
	resp, err := req.RequestWith(ctx, c)
	ts.Check(err)
	ts.Check(kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

func takeOver(ts *testscript.TestScript, _ bool, args []string) {
	c := client(ts, kgo.TransactionalID(args[0]), kgo.ClientID("successor"))
	ts.Defer(c.Close)
	_, _, err := c.ProducerID(context.Background())
	ts.Check(err)
}

// unquoted lets a script name what is no text.
func unquoted(ts *testscript.TestScript, s string) string {
	var out string
	if _, err := fmt.Sscanf(`"`+s+`"`, "%q", &out); err != nil {
		ts.Check(err)
	}
	return out
}
