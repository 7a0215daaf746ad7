package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

// change plans and shows the plan; it is applied only with yes.
func (a *adminFlags) change(ctx context.Context, req *adminpb.PlanOffsetsRequest, yes bool) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		plan, err := api.PlanOffsets(ctx, req)
		if err != nil {
			return err
		}
		if err := a.showPlan(plan); err != nil {
			return err
		}
		if !yes {
			return a.notYet("Nothing was changed. Apply it with --yes.")
		}
		return a.apply(ctx, api, plan)
	})
}

func (a *adminFlags) apply(ctx context.Context, api api, plan *adminpb.OffsetsPlan) error {
	if _, err := api.ApplyOffsets(ctx, plan); err != nil {
		return err
	}
	return a.notYet(fmt.Sprintf("Applied to group %s.", table.Plain(plan.GetGroup())))
}

func (a *adminFlags) showPlan(plan *adminpb.OffsetsPlan) error {
	if a.Output == "json" {
		return printJSON(plan)
	}
	fmt.Printf("Plan for group %s:\n", table.Plain(plan.GetGroup()))
	noted := false
	for _, c := range plan.GetChanges() {
		noted = noted || c.GetNote() != ""
	}
	header := []string{"TOPIC", ">PARTITION", ">CURRENT-OFFSET", ">NEW-OFFSET"}
	if noted {
		header = append(header, "NOTE")
	}
	t := table.New(header...)
	for _, c := range plan.GetChanges() {
		to := "delete"
		if c.New != nil {
			to = known(c.New)
		}
		t.Row(c.GetTopic(), strconv.Itoa(int(c.GetPartition())), known(c.Current), to, c.GetNote())
	}
	return a.table(t, "no changes")
}

type offsetsApplyCommand struct {
	File string `arg:"" placeholder:"FILE" help:"A plan; - for stdin."`
	Yes  bool   `help:"Do it; else it is only shown what would change."`
}

// Run applies a plan that was made before, if all is still as it was then.
func (f *offsetsApplyCommand) Run(ctx context.Context, a *adminFlags) error {
	in := io.Reader(os.Stdin)
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return mistake{err}
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return mistake{err}
	}
	plan := &adminpb.OffsetsPlan{}
	if err := protojson.Unmarshal(raw, plan); err != nil {
		return mistake{fmt.Errorf("%s is not a plan, as -o json prints one: %w", f.File, err)}
	}
	if err := a.showPlan(plan); err != nil {
		return err
	}
	if !f.Yes {
		return a.notYet("Nothing was changed. Apply it with --yes.")
	}
	return a.ask(ctx, func(ctx context.Context, api api) error { return a.apply(ctx, api, plan) })
}
