package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type txnsCommand struct {
	adminFlags

	List        txnsListCommand     `cmd:"" help:"List transactional ids."`
	Describe    txnsDescribeCommand `cmd:"" help:"Show whose transactions are, since when, what is in them, and what they wait for."`
	Abort       txnsAbortCommand    `cmd:"" help:"Abort an open transaction, or what hangs in a partition."`
	FindHanging txnsHangingCommand  `cmd:"" help:"Find transactions in partitions that nobody will end, by asking the brokers."`
	Quarantined txnsQuarantined     `cmd:"" help:"List transactional ids whose record cannot be read."`
	Explain     txnsExplainCommand  `cmd:"" help:"Tell who fenced a producer, when, and by which rule."`
}

type txnsListCommand struct {
	State      []string       `placeholder:"STATE" help:"Only those in one of these states (Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort)."`
	ProducerID []int64        `placeholder:"ID" help:"Only those of one of these producer ids."`
	LongerThan *time.Duration `placeholder:"DURATION" help:"Only those that began longer ago: 10m."`
	Pattern    string         `placeholder:"REGEXP" help:"Only ids that this matches as a whole (RE2)."`
}

// Run lists transactional ids.
func (l *txnsListCommand) Run(ctx context.Context, a *adminFlags) error {
	req := &adminpb.ListTransactionsRequest{States: l.State, ProducerIds: l.ProducerID, Pattern: l.Pattern}
	if l.LongerThan != nil {
		ms := l.LongerThan.Milliseconds()
		req.LongerThanMs = &ms
	}
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ListTransactions(ctx, req)
		if err != nil {
			return err
		}
		t := table.New("TRANSACTIONAL-ID", "STATE", ">PRODUCER-ID")
		for _, x := range resp.GetTransactions() {
			t.Row(x.GetTransactionalId(), x.GetState(), strconv.FormatInt(x.GetProducerId(), 10))
		}
		return a.print(resp, t, "no transactions")
	})
}

type txnsDescribeCommand struct {
	IDs []string `arg:"" name:"id" help:"Transactional ids."`
}

// Run shows a paragraph for each id.
func (d *txnsDescribeCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.DescribeTransactions(ctx, &adminpb.DescribeTransactionsRequest{TransactionalIds: d.IDs})
		if err != nil {
			return err
		}
		if a.Output == "json" {
			return printJSON(resp)
		}
		for i, x := range resp.GetTransactions() {
			if i > 0 {
				fmt.Println()
			}
			if err := a.describeTxn(x); err != nil {
				return err
			}
		}
		return nil
	})
}

// describeTxn has what is one as lines, and what may be many as a table.
func (a *adminFlags) describeTxn(x *adminpb.DescribedTransaction) error {
	id := table.Plain(x.GetTransactionalId())
	if !x.GetExists() && !x.GetQuarantined() {
		fmt.Printf("%s: does not exist\n", id)
		return nil
	}
	fmt.Printf("%s: %s\n", id, x.GetState())
	line := func(name, value string) {
		if value != "" {
			fmt.Printf("  %-9s %s\n", name, table.Plain(value))
		}
	}
	if !x.GetQuarantined() {
		line("producer", producer(x.GetProducerId(), x.GetProducerEpoch()))
	}
	if x.OwnerClientId != nil {
		line("owner", fmt.Sprintf("client %s at %s, heard %s", x.GetOwnerClientId(), x.GetOwnerHost(), at(x.GetHeardMs())))
	} else {
		line("owner", "not heard of since the restart")
	}
	if x.StartedMs != nil {
		line("since", at(x.GetStartedMs()))
	}
	if !x.GetQuarantined() {
		line("timeout", (time.Duration(x.GetTimeoutMs()) * time.Millisecond).String())
	}
	line("groups", strings.Join(x.GetGroups(), ", "))
	line("waits for", x.GetPending())
	if len(x.GetPartitions()) == 0 {
		return nil
	}
	fmt.Println()
	return a.table(partitionTable(x.GetPartitions()), "")
}

func partitionTable(partitions []*adminpb.TopicPartitions) *table.Table {
	t := table.New("TOPIC", "PARTITIONS")
	for _, p := range partitions {
		t.Row(p.GetTopic(), ranges(p.GetPartitions()))
	}
	return t
}

// producer is a producer id with its epoch, as events show it.
func producer(id int64, epoch int32) string { return fmt.Sprintf("%d/%d", id, epoch) }

// at is a moment in UTC.
func at(millis int64) string { return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z") }

type txnsQuarantined struct{}

// Run lists transactional ids in quarantine.
func (txnsQuarantined) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ListQuarantinedTransactions(ctx, &adminpb.ListQuarantinedTransactionsRequest{})
		if err != nil {
			return err
		}
		if a.Output == "json" {
			return printJSON(resp)
		}
		if len(resp.GetTransactions()) == 0 {
			fmt.Println("no transactional id is in quarantine")
		}
		for _, q := range resp.GetTransactions() {
			a.quarantined(q.GetTransactionalId(), q.GetRecord())
		}
		return nil
	})
}

type txnsExplainCommand struct {
	ID string `arg:"" help:"A transactional id."`
}

// Run shows an id and what has happened to its producers, a line each.
func (e *txnsExplainCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ExplainTransaction(ctx, &adminpb.ExplainTransactionRequest{TransactionalId: e.ID})
		if err != nil {
			return err
		}
		if a.Output == "json" {
			return printJSON(resp)
		}
		if err := a.describeTxn(resp.GetTransaction()); err != nil {
			return err
		}
		fmt.Println()
		if len(resp.GetEvents()) == 0 {
			fmt.Println("Nothing has happened to it since the restart.")
		}
		for _, ev := range resp.GetEvents() {
			fmt.Printf("%s  %s\n  %s\n", at(ev.GetAtMs()), ev.GetRule(), table.Plain(ev.GetWords()))
		}
		return nil
	})
}
