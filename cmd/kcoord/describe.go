package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type describeCommand struct {
	Groups []string `arg:"" name:"group" help:"Ids of groups."`
}

// Run describes groups: who is in each, and how far it has come.
func (d *describeCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.DescribeGroups(ctx, &adminpb.DescribeGroupsRequest{Groups: d.Groups, Offsets: true})
		if err != nil {
			return err
		}
		if a.Output == "json" {
			return printJSON(resp)
		}
		for i, g := range resp.GetGroups() {
			if i > 0 {
				fmt.Println()
			}
			if err := a.describe(g); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *adminFlags) describe(g *adminpb.DescribedGroup) error {
	fmt.Printf("%s: %s\n", table.Plain(g.GetGroup()), stateOf(g))
	if g.GetErrorCode() != 0 {
		return nil
	}
	if len(g.GetMembers()) > 0 {
		fmt.Println()
		t := table.New("CONSUMER-ID", "HOST", "CLIENT-ID", "ASSIGNMENT")
		for _, m := range g.GetMembers() {
			t.Row(m.GetMemberId(), m.GetClientHost(), m.GetClientId(), assignment(m))
		}
		if err := a.table(t, ""); err != nil {
			return err
		}
	}
	read := slices.Concat(g.GetOffsets(), g.GetUncommitted())
	if len(read) == 0 {
		fmt.Println("No offsets are committed.")
		return nil
	}
	slices.SortFunc(read, func(a, b *adminpb.PartitionOffset) int {
		return cmp.Or(cmp.Compare(a.GetTopic(), b.GetTopic()), cmp.Compare(a.GetPartition(), b.GetPartition()))
	})
	fmt.Println()
	if err := a.table(a.offsetTable(read, readers(g)), ""); err != nil {
		return err
	}
	return a.endsUnknown(g.GetEndsUnknown())
}

// stateOf is a group's state in words.
func stateOf(g *adminpb.DescribedGroup) string {
	switch {
	case g.GetError() == "GROUP_ID_NOT_FOUND":
		return "does not exist"
	case g.GetError() != "":
		return g.GetError()
	}
	words := fmt.Sprintf("%s, generation %d", g.GetState(), g.GetGeneration())
	if g.GetProtocol() != "" {
		words += ", " + g.GetProtocol()
	}
	if n := len(g.GetMembers()); n > 0 {
		words += ", members: " + strconv.Itoa(n)
	}
	return words
}

// readers says who reads a partition.
func readers(g *adminpb.DescribedGroup) map[string]string {
	who := map[string]string{}
	for _, m := range g.GetMembers() {
		for _, t := range m.GetAssignment() {
			for _, p := range t.GetPartitions() {
				who[fmt.Sprint(t.GetTopic(), "-", p)] = m.GetMemberId()
			}
		}
	}
	return who
}

// offsetTable has Kafka's columns. readers is nil where there is nobody to be named.
func (a *adminFlags) offsetTable(offsets []*adminpb.PartitionOffset, readers map[string]string) *table.Table {
	header := []string{"TOPIC", ">PARTITION", ">CURRENT-OFFSET", ">LOG-END-OFFSET", ">LAG"}
	wide := a.Output == "wide"
	if wide {
		header = append(header, ">LOG-START-OFFSET", ">LEADER-EPOCH", "METADATA")
	}
	if len(readers) > 0 {
		header = append(header, "CONSUMER-ID")
	}
	t := table.New(header...)
	for _, o := range offsets {
		offset := ""
		if o.GetOffset() >= 0 {
			offset = strconv.FormatInt(o.GetOffset(), 10)
		}
		row := []string{o.GetTopic(), strconv.Itoa(int(o.GetPartition())), offset, known(o.EndOffset), known(o.Lag)}
		if wide {
			epoch := ""
			if o.GetLeaderEpoch() >= 0 {
				epoch = strconv.Itoa(int(o.GetLeaderEpoch()))
			}
			row = append(row, known(o.StartOffset), epoch, o.GetMetadata())
		}
		if len(readers) > 0 {
			row = append(row, readers[fmt.Sprint(o.GetTopic(), "-", o.GetPartition())])
		}
		t.Row(row...)
	}
	return t
}

func known(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func (a *adminFlags) endsUnknown(why string) error {
	if why == "" {
		return nil
	}
	_, err := fmt.Printf("Where the logs end is not known: %s\n", table.Plain(why))
	return err
}
