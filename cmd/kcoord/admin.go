package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kcoord/kcoord/api/admin"
	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

// adminFlags are those of all commands that ask a running kcoord.
type adminFlags struct {
	Admin  string `placeholder:"HOST:PORT" env:"KCOORD_ADMIN" default:"127.0.0.1:9094" help:"The admin API of the kcoord to ask (${default})."`
	Output string `short:"o" enum:"table,wide,json" default:"table" help:"table (80 columns), wide or json."`
}

// AfterApply hands the flags to the commands below.
func (a *adminFlags) AfterApply(c *kong.Context) error {
	c.Bind(a)
	return nil
}

// refusal is what kcoord would not do, for a reason that is not the user's mistake: a
// group in use, a plan that is out of date.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// callLimit bounds a call: kcoord answers in milliseconds, the broker behind it in a few
// seconds, or not at all.
const callLimit = 30 * time.Second

// api is the admin API of one kcoord.
type api struct {
	adminpb.GroupsClient
	adminpb.OffsetsClient
	adminpb.NodeClient
	adminpb.TransactionsClient
	adminpb.VersionsClient
}

// ask calls the admin API.
func (a *adminFlags) ask(ctx context.Context, call func(context.Context, api) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return a.stay(ctx, call)
}

// stay is ask without a bound.
func (a *adminFlags) stay(ctx context.Context, call func(context.Context, api) error) error {
	if !isHostPort(a.Admin) {
		return mistake{fmt.Errorf("--admin %q: say it as HOST:PORT", a.Admin)}
	}
	conn, err := grpc.NewClient(a.Admin, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(admin.MaxMessage), grpc.MaxCallSendMsgSize(admin.MaxMessage)))
	if err != nil {
		return mistake{fmt.Errorf("--admin %s: %w", a.Admin, err)}
	}
	defer conn.Close()
	return a.explained(call(ctx, api{
		adminpb.NewGroupsClient(conn), adminpb.NewOffsetsClient(conn), adminpb.NewNodeClient(conn), adminpb.NewTransactionsClient(conn),
		adminpb.NewVersionsClient(conn),
	}))
}

// explained turns a call's error into a line for people. What else it says is for
// programs.
func (a *adminFlags) explained(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	words := errors.New(s.Message())
	switch s.Code() {
	case codes.Unavailable: // in gRPC's words, unless kcoord says it itself
		switch said := s.Message(); {
		case strings.Contains(said, "reading server preface"), strings.HasPrefix(said, "write tcp"):
			return mistake{fmt.Errorf("what answers on %s is not the admin API of a kcoord: say with --admin where that is", a.Admin)}
		case strings.Contains(said, "resolver error"), strings.Contains(said, "connect") && strings.Contains(said, "transport"):
			return mistake{fmt.Errorf("no kcoord answers on %s: start it with --admin %s, or say where it is with --admin", a.Admin, a.Admin)}
		case strings.HasPrefix(said, "error reading from server"), strings.Contains(said, "closing transport"):
			return fmt.Errorf("the kcoord on %s went away before it had answered: see what it has done when it is back", a.Admin)
		}
	case codes.Unimplemented:
		return mistake{fmt.Errorf("what answers on %s is no kcoord, or one of another version: %w", a.Admin, words)}
	case codes.DeadlineExceeded:
		return fmt.Errorf("the kcoord on %s has not answered within %s: see what it has done when it does", a.Admin, callLimit)
	case codes.InvalidArgument, codes.NotFound:
		return mistake{words}
	case codes.FailedPrecondition:
		if a.Output == "json" {
			for _, d := range s.Details() {
				if m, is := d.(proto.Message); is {
					if err := printJSON(m); err != nil {
						return err
					}
				}
			}
		}
		return refusal{words}
	}
	return words
}

// print shows an answer as asked for.
func (a *adminFlags) print(resp proto.Message, t *table.Table, none string) error {
	if a.Output == "json" {
		return printJSON(resp)
	}
	return a.table(t, none)
}

func (a *adminFlags) table(t *table.Table, none string) error {
	if t.Len() == 0 {
		_, err := fmt.Println(none)
		return err
	}
	width := 80
	if a.Output == "wide" {
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
