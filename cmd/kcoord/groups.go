package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kcoord/kcoord/api/admin"
	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type groupsCommand struct {
	adminFlags

	List        listCommand        `cmd:"" help:"List groups."`
	Describe    describeCommand    `cmd:"" help:"Show groups with members, offsets and lag."`
	Watch       watchCommand       `cmd:"" help:"Show a group's state and members, and again whenever they change."`
	Delete      deleteCommand      `cmd:"" help:"Delete groups without members, with their offsets."`
	Quarantined quarantinedCommand `cmd:"" help:"List groups that have records which cannot be read."`
}

type listCommand struct {
	State []string `placeholder:"STATE" help:"Only groups in one of these states."`
}

type watchCommand struct {
	Group string `arg:"" help:"Id of a group."`
}

type deleteCommand struct {
	Groups []string `arg:"" name:"group" help:"Ids of groups."`
	Yes    bool     `help:"Do it; else it is only shown what would be deleted."`
}

type quarantinedCommand struct{}

// Run lists groups.
func (l *listCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ListGroups(ctx, &adminpb.ListGroupsRequest{States: l.State})
		if err != nil {
			return err
		}
		t := table.New("GROUP", "STATE", "TYPE", "PROTOCOL TYPE")
		for _, listed := range resp.GetGroups() {
			t.Row(listed.GetGroup(), listed.GetState(), listed.GetType(), listed.GetProtocolType())
		}
		return a.print(resp, t, "no groups")
	})
}

// Run shows a line whenever the group changes, until the user or kcoord ends it.
func (w *watchCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.stay(ctx, func(ctx context.Context, api api) error {
		stream, err := api.WatchGroup(ctx, &adminpb.WatchGroupRequest{Group: w.Group})
		for err == nil {
			var g *adminpb.DescribedGroup
			if g, err = stream.Recv(); err != nil {
				break
			}
			if a.Output == "json" {
				err = printJSON(g)
			} else {
				_, err = fmt.Println(inALine(g))
			}
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has seen enough
		}
		return err
	})
}

// inALine is a group's state and who is in it.
func inALine(g *adminpb.DescribedGroup) string {
	line := fmt.Sprintf("%s  %s", table.Plain(g.GetGroup()), stateOf(g))
	for _, m := range g.GetMembers() {
		line += fmt.Sprintf("\n  %s  %s", table.Plain(m.GetMemberId()), table.Plain(assignment(m)))
	}
	return line
}

// Run shows what would be deleted, or deletes each that can be.
func (d *deleteCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.DescribeGroups(ctx, &adminpb.DescribeGroupsRequest{Groups: d.Groups, Offsets: true})
		if err != nil {
			return err
		}
		t := table.New("GROUP", "STATE", ">OFFSETS")
		for _, g := range resp.GetGroups() {
			t.Row(g.GetGroup(), stateOf(g), strconv.Itoa(len(g.GetOffsets())))
		}
		if err := a.print(resp, t, ""); err != nil {
			return err
		}
		if !d.Yes {
			if err := inUse(resp.GetGroups()); err != nil {
				return err
			}
			return a.notYet("Nothing was deleted. Delete them with --yes.")
		}
		var errs []error
		var deleted []string
		for _, g := range d.Groups {
			if _, err := api.DeleteGroup(ctx, &adminpb.DeleteGroupRequest{Group: g}); err != nil {
				errs = append(errs, a.explained(err))
			} else {
				deleted = append(deleted, table.Plain(g))
			}
		}
		switch {
		case errs == nil:
			return a.notYet("Deleted.")
		case deleted == nil:
			return several(errs)
		}
		return several(append(errs, a.notYet("Deleted: "+strings.Join(deleted, ", ")+".")))
	})
}

// inUse refuses a plan of which groups have members.
func inUse(groups []*adminpb.DescribedGroup) error {
	var used []string
	for _, g := range groups {
		if len(g.GetMembers()) > 0 {
			used = append(used, admin.InUse(g.GetGroup(), g.GetState(), g.GetMembers()))
		}
	}
	if used == nil {
		return nil
	}
	return refusal{errors.New(strings.Join(used, "; "))}
}

// notYet says how it goes on, to people.
func (a *adminFlags) notYet(words string) error {
	if a.Output == "json" {
		return nil
	}
	_, err := fmt.Println(words)
	return err
}

// assignment is a member's in short: orders 0-2,5.
func assignment(m *adminpb.Member) string {
	var topics []string
	for _, t := range m.GetAssignment() {
		topics = append(topics, t.GetTopic()+" "+ranges(t.GetPartitions()))
	}
	if topics == nil && len(m.GetRawAssignment()) > 0 {
		return fmt.Sprintf("%d bytes", len(m.GetRawAssignment()))
	}
	return strings.Join(topics, "; ")
}

// ranges is a list of numbers in short.
func ranges(numbers []int32) string {
	numbers = slices.Sorted(slices.Values(numbers))
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(int(numbers[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(numbers[j]))
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Run lists groups in quarantine.
func (quarantinedCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ListQuarantined(ctx, &adminpb.ListQuarantinedRequest{})
		if err != nil {
			return err
		}
		if a.Output == "json" {
			return printJSON(resp)
		}
		if len(resp.GetGroups()) == 0 {
			fmt.Println("no group is in quarantine")
		}
		for _, q := range resp.GetGroups() {
			a.quarantined(q.GetGroup(), q.GetRecords()...)
		}
		return nil
	})
}

// quarantined prints a paragraph for each record, since what is wrong with it is a sentence.
func (a *adminFlags) quarantined(id string, records ...*adminpb.UnreadableRecord) {
	fmt.Printf("%s  %d unreadable\n", table.Plain(id), len(records))
	for _, r := range records {
		fmt.Printf("  %s\n  key    %s\n  value  %s\n", table.Plain(r.GetProblem()), a.hex(r.GetKey()), a.hex(r.GetValue()))
	}
}

// hex is for a line of 80 columns, unless it is to be wide.
func (a *adminFlags) hex(b []byte) string {
	const shown = 28
	if a.Output == "wide" || len(b) <= shown {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%x… %d bytes", b[:shown], len(b))
}
