package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type groupsCommand struct {
	Admin  string `placeholder:"HOST:PORT" env:"KCOORD_ADMIN" default:"127.0.0.1:9094" help:"The admin API of the kcoord to ask (${default})."`
	Output string `short:"o" enum:"table,wide,json" default:"table" help:"table (80 columns), wide or json."`

	List        listCommand        `cmd:"" help:"List groups."`
	Describe    describeCommand    `cmd:"" help:"Show groups with their members."`
	Quarantined quarantinedCommand `cmd:"" help:"List groups that have records which cannot be read."`
}

type listCommand struct {
	State []string `placeholder:"STATE" help:"Only groups in one of these states."`
}

type describeCommand struct {
	Groups []string `arg:"" name:"group" help:"Ids of groups."`
}

type quarantinedCommand struct{}

// Run lists groups.
func (l *listCommand) Run(ctx context.Context, g *groupsCommand) error {
	return g.ask(ctx, func(ctx context.Context, api adminpb.GroupsClient) error {
		resp, err := api.ListGroups(ctx, &adminpb.ListGroupsRequest{States: l.State})
		if err != nil {
			return err
		}
		t := table.New("GROUP", "STATE", "TYPE", "PROTOCOL TYPE")
		for _, listed := range resp.GetGroups() {
			t.Row(listed.GetGroup(), listed.GetState(), listed.GetType(), listed.GetProtocolType())
		}
		return g.print(resp, t, "no groups")
	})
}

// Run describes groups: one table of members, and a line for each group that has none.
func (d *describeCommand) Run(ctx context.Context, g *groupsCommand) error {
	return g.ask(ctx, func(ctx context.Context, api adminpb.GroupsClient) error {
		resp, err := api.DescribeGroups(ctx, &adminpb.DescribeGroupsRequest{Groups: d.Groups})
		if err != nil {
			return err
		}
		t := table.New("GROUP", "STATE", "MEMBER", "HOST", "ASSIGNMENT")
		for _, described := range resp.GetGroups() {
			state := described.GetState()
			if described.GetErrorCode() != 0 {
				state = described.GetError()
			}
			if len(described.GetMembers()) == 0 {
				t.Row(described.GetGroup(), state)
			}
			for _, m := range described.GetMembers() {
				t.Row(described.GetGroup(), state, m.GetMemberId(), m.GetClientHost(), assignment(m))
			}
		}
		return g.print(resp, t, "no groups")
	})
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

// Run lists groups in quarantine: a paragraph for each record, since what is wrong
// with it is a sentence.
func (quarantinedCommand) Run(ctx context.Context, g *groupsCommand) error {
	return g.ask(ctx, func(ctx context.Context, api adminpb.GroupsClient) error {
		resp, err := api.ListQuarantined(ctx, &adminpb.ListQuarantinedRequest{})
		if err != nil {
			return err
		}
		if g.Output == "json" {
			return printJSON(resp)
		}
		if len(resp.GetGroups()) == 0 {
			fmt.Println("no group is in quarantine")
		}
		for _, q := range resp.GetGroups() {
			fmt.Printf("%s  %d unreadable\n", q.GetGroup(), len(q.GetRecords()))
			for _, r := range q.GetRecords() {
				fmt.Printf("  %s\n  key    %s\n  value  %s\n", r.GetProblem(), g.hex(r.GetKey()), g.hex(r.GetValue()))
			}
		}
		return nil
	})
}

// hex is for a line of 80 columns, unless it is to be wide.
func (g *groupsCommand) hex(b []byte) string {
	const shown = 28
	if g.Output == "wide" || len(b) <= shown {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%x… %d bytes", b[:shown], len(b))
}

// callLimit bounds a call: kcoord answers in milliseconds or not at all.
const callLimit = 10 * time.Second

// ask calls the admin API.
func (g *groupsCommand) ask(ctx context.Context, call func(context.Context, adminpb.GroupsClient) error) error {
	conn, err := grpc.NewClient(g.Admin, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return mistake{fmt.Errorf("--admin %s: %w", g.Admin, err)}
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = call(ctx, adminpb.NewGroupsClient(conn))
	switch s, ok := status.FromError(err); {
	case !ok || err == nil:
		return err
	case s.Code() == codes.Unavailable && strings.Contains(s.Message(), "connect"):
		return mistake{fmt.Errorf("no kcoord answers on %s: start it with --admin %s, or say where it is with --admin", g.Admin, g.Admin)}
	default:
		return errors.New(s.Message())
	}
}

// print shows an answer as asked for.
func (g *groupsCommand) print(resp proto.Message, t *table.Table, none string) error {
	if g.Output == "json" {
		return printJSON(resp)
	}
	if t.Len() == 0 {
		_, err := fmt.Println(none)
		return err
	}
	width := 80
	if g.Output == "wide" {
		width = 0
	}
	return t.Print(os.Stdout, width)
}

func printJSON(resp proto.Message) error {
	out, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(resp)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", out)
	return err
}
