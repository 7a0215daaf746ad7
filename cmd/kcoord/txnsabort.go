package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type txnsAbortCommand struct {
	ID            string `arg:"" optional:"" help:"A transactional id."`
	Topic         string `placeholder:"TOPIC" help:"Without an id: the topic of what hangs, as find-hanging names it."`
	Partition     int32  `placeholder:"P" help:"And its partition."`
	ProducerID    *int64 `placeholder:"ID" help:"Whose; with an id only if the transaction is still of this producer."`
	ProducerEpoch *int32 `placeholder:"EPOCH" help:"And the producer's epoch."`
	Yes           bool   `help:"Do it; else it is only shown what would be aborted."`
}

// Run shows what would be aborted and, with --yes, aborts exactly that.
func (c *txnsAbortCommand) Run(ctx context.Context, a *adminFlags) error {
	if (c.ID == "") == (c.Topic == "") {
		return mistake{fmt.Errorf("what? Say a transactional id, or --topic, --partition, --producer-id and --producer-epoch as find-hanging prints them")}
	}
	req := &adminpb.PlanAbortRequest{TransactionalId: c.ID, Topic: c.Topic, Partition: c.Partition, ProducerId: c.ProducerID, ProducerEpoch: c.ProducerEpoch}
	return a.ask(ctx, func(ctx context.Context, api api) error {
		plan, err := api.PlanAbort(ctx, req)
		if err != nil {
			return err
		}
		if err := a.showAbort(plan); err != nil {
			return err
		}
		if !c.Yes {
			return a.notYet("Nothing was aborted. Abort it with --yes.")
		}
		if _, err := api.ApplyAbort(ctx, plan); err != nil {
			return err
		}
		return a.notYet("Aborted.")
	})
}

func (a *adminFlags) showAbort(plan *adminpb.AbortPlan) error {
	if a.Output == "json" {
		return printJSON(plan)
	}
	name := "in a partition"
	if plan.GetTransactionalId() != "" {
		name = "of " + table.Plain(plan.GetTransactionalId())
	}
	fmt.Printf("The transaction %s: %s, producer %s", name, plan.GetState(), producer(plan.GetProducerId(), plan.GetProducerEpoch()))
	if plan.StartedMs != nil {
		fmt.Printf(", since %s", at(plan.GetStartedMs()))
	}
	if plan.GetTransactionalId() == "" {
		fmt.Printf(", from offset %d", plan.GetStartOffset())
	}
	fmt.Println()
	if len(plan.GetPartitions()) > 0 {
		if err := a.table(partitionTable(plan.GetPartitions()), ""); err != nil {
			return err
		}
	}
	if len(plan.GetGroups()) > 0 {
		fmt.Printf("Groups with offsets in it: %s\n", table.Plain(strings.Join(plan.GetGroups(), ", ")))
	}
	fmt.Printf("Then %s.\n", table.Plain(plan.GetNote()))
	return nil
}

type txnsHangingCommand struct {
	Topic []string `placeholder:"TOPIC" help:"Only in these topics."`
}

// Run shows what hangs, and what ends it: whole lines, which can be copied.
func (h *txnsHangingCommand) Run(ctx context.Context, a *adminFlags) error {
	req := &adminpb.FindHangingRequest{}
	for _, t := range h.Topic {
		req.Partitions = append(req.Partitions, &adminpb.TopicPartitions{Topic: t})
	}
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.FindHanging(ctx, req)
		if err != nil {
			return err
		}
		t := table.New("TOPIC", ">PARTITION", ">FROM", "PRODUCER", "LAST-WRITE", "ID")
		for _, x := range resp.GetHanging() {
			t.Row(x.GetTopic(), strconv.Itoa(int(x.GetPartition())), strconv.FormatInt(x.GetStartOffset(), 10),
				producer(x.GetProducerId(), x.GetProducerEpoch()), at(x.GetLastMs())[:len("2006-01-02T15:04:05")], x.GetTransactionalId())
		}
		if err := a.print(resp, t, "nothing hangs"); err != nil || a.Output == "json" {
			return err
		}
		for i, x := range resp.GetHanging() {
			if i == 0 {
				fmt.Println("\nThis aborts them; --yes is what makes it happen:")
			}
			fmt.Println(table.Plain(x.GetAbort()))
		}
		for _, failed := range resp.GetNotAsked() {
			fmt.Printf("Not asked about: %s\n", table.Plain(failed))
		}
		return nil
	})
}
