package main

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Of scripts about transactions:
//
//	begin ID TOPIC      begins a transaction at $KAFKA, writes a record to partition 0, and leaves it open
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
