package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

type downgradeCommand struct {
	To      downgradeToCommand      `cmd:"" default:"withargs" help:"Plan a downgrade, and do it if nothing is lost."`
	Status  downgradeStatusCommand  `cmd:"" help:"Show what is finalized, and how far a rewrite is."`
	Restore downgradeRestoreCommand `cmd:"" help:"Put a checkpoint back. kcoord must be stopped."`
}

type downgradeToCommand struct {
	adminFlags

	To     string `required:"" placeholder:"VERSION" help:"A name (3.4-IV0), a release (3.4, 3.4.1) or a feature level (8)."`
	DryRun bool   `help:"Only show the plan."`
	Force  bool   `aliases:"unsafe" help:"Give up what cannot be kept, after a checkpoint (or --unsafe)."`
}

// Run shows the plan, and goes by it.
func (d *downgradeToCommand) Run(ctx context.Context) error {
	return d.stay(ctx, func(ctx context.Context, api api) error {
		now, err := api.DescribeVersions(ctx, &adminpb.DescribeVersionsRequest{})
		if err != nil {
			return err
		}
		if now.GetRewrite().GetUnderWay() && !d.DryRun { // no time for plans: it is followed, if it goes there
			return d.do(ctx, api)
		}
		plan, err := d.plan(ctx, api)
		if err != nil {
			return err
		}
		if err := d.showDowngrade(plan); err != nil {
			return err
		}
		switch lossy := len(plan.GetLosses()) > 0; {
		case lossy && !d.Force:
			return refusal{fmt.Errorf("the downgrade to %s would lose what is stored, in %s: nothing was changed. --force takes a checkpoint and goes ahead",
				plan.GetTo(), table.Count(int64(len(plan.GetLosses())), "way"))}
		case d.DryRun:
			return d.notYet("Nothing was changed.")
		}
		return d.do(ctx, api)
	})
}

func (d *downgradeToCommand) plan(ctx context.Context, api api) (*adminpb.DowngradePlan, error) {
	stream, err := api.PlanDowngrade(ctx, &adminpb.PlanDowngradeRequest{To: d.To})
	if err != nil {
		return nil, err
	}
	b := newBar(os.Stderr)
	defer b.clear()
	for {
		resp, err := stream.Recv()
		switch {
		case err != nil:
			return nil, err
		case resp.GetPlan() != nil:
			return resp.GetPlan(), nil
		}
		p := resp.GetProgress()
		b.show(int(p.GetShardsDone()), int(p.GetShards()), "planning: %d records read", p.GetRecords())
	}
}

func (d *downgradeToCommand) showDowngrade(plan *adminpb.DowngradePlan) error {
	if d.Output == "json" {
		plan.Text = ""
		return printJSON(plan)
	}
	width := 80
	if d.Output == "wide" {
		width = 1 << 20
	}
	for line := range strings.Lines(plan.GetText()) {
		if _, err := fmt.Println(hanging(strings.TrimSuffix(line, "\n"), width)); err != nil {
			return err
		}
	}
	return nil
}

// hanging wraps a line, with what follows further in than its beginning. A word that
// is longer than a line is cut.
func hanging(line string, width int) string {
	text := strings.TrimLeft(line, " ")
	in := len(line) - len(text)
	if len([]rune(line)) <= width {
		return line
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
			b.WriteString(strings.Repeat(" ", in))
			at = in
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", in+2))
			at = in + 2
		default:
			b.WriteByte(' ')
			at++
		}
		for r := []rune(word); len(r) > 0; {
			fits := min(len(r), width-at)
			b.WriteString(string(r[:fits]))
			at += fits
			if r = r[fits:]; len(r) > 0 {
				b.WriteString("\n" + strings.Repeat(" ", in+2))
				at = in + 2
			}
		}
	}
	return b.String()
}

// do lowers the version and follows the rewrite to its end.
func (d *downgradeToCommand) do(ctx context.Context, api api) error {
	stream, err := api.Downgrade(ctx, &adminpb.DowngradeRequest{To: d.To, Force: d.Force})
	if err != nil {
		return err
	}
	b := newBar(os.Stderr)
	defer b.clear()
	var last *adminpb.Rewrite
	said := ""
	for {
		resp, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			b.clear()
			return d.ended(last)
		case err != nil && last != nil && status.Code(err) == codes.Unavailable:
			return fmt.Errorf("the kcoord on %s went away: the rewrite goes on when it is started again (kcoord downgrade status tells how far it is)", d.Admin)
		case err != nil:
			return err
		}
		switch {
		case resp.GetStarted() != nil:
			b.clear()
			if err := d.started(resp.GetStarted()); err != nil {
				return err
			}
		case resp.GetRewrite() != nil:
			last = resp.GetRewrite()
			done, of := progress(last)
			b.show(done, of, "%s", rewriting(last))
			if stuck := last.GetProblem(); stuck != "" && stuck != said {
				b.say("kcoord: %s: it is tried again", stuck)
				said = stuck
			}
		default:
			p := resp.GetProgress()
			b.show(int(p.GetShardsDone()), int(p.GetShards()), "planning: %d records read", p.GetRecords())
		}
	}
}

// progress of a rewrite is that of its records; those that its plan did not know make it no
// longer than it is.
func progress(r *adminpb.Rewrite) (done, of int) {
	if of = int(r.GetPlanned()); of == 0 {
		return int(r.GetShardsDone()), int(r.GetShards())
	}
	done = min(int(r.GetRewritten()+r.GetDeleted()), of)
	if r.GetUnderWay() {
		done = min(done, of-1)
	}
	return done, of
}

func rewriting(r *adminpb.Rewrite) string {
	switch {
	case r.GetProblem() != "":
		return "trying again: " + r.GetProblem()
	case r.GetWaiting() > 0:
		return fmt.Sprintf("waiting for transactions in %s", table.Count(int64(r.GetWaiting()), "shard"))
	}
	return fmt.Sprintf("%s rewritten, %d deleted", table.Count(r.GetRewritten(), "record"), r.GetDeleted())
}

func (d *downgradeToCommand) started(s *adminpb.DowngradeStarted) error {
	switch {
	case d.Output == "json":
		return printJSON(s)
	case s.GetUnchanged():
		return d.notYet("It is so already: nothing was changed.")
	}
	if s.GetCheckpoint() == "" {
		return nil
	}
	return errors.Join(
		d.notYet(fmt.Sprintf("Checkpoint, %s:\n  %s", size(s.GetCheckpointBytes()), s.GetCheckpoint())),
		d.notYet("To have it back: stop kcoord, then\n  kcoord downgrade restore "+s.GetCheckpoint()),
	)
}

func (d *downgradeToCommand) ended(r *adminpb.Rewrite) error {
	switch {
	case r == nil:
		return nil
	case d.Output == "json":
		return printJSON(r)
	}
	fmt.Printf("At %s now: %s rewritten, %d deleted.\n", r.GetTo(), table.Count(r.GetRewritten(), "record"), r.GetDeleted())
	return showLost(r)
}

func showLost(r *adminpb.Rewrite) error {
	if len(r.GetLost()) == 0 {
		return nil
	}
	fmt.Println("Lost:")
	for _, what := range slices.Sorted(maps.Keys(r.GetLost())) {
		fmt.Printf("  %8d  %s\n", r.GetLost()[what], what)
	}
	_, err := fmt.Printf("Which they were is in\n  %s\n", r.GetReport())
	return err
}

type downgradeStatusCommand struct{ adminFlags }

// Run shows what is finalized.
func (d *downgradeStatusCommand) Run(ctx context.Context) error {
	return d.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.DescribeVersions(ctx, &adminpb.DescribeVersionsRequest{})
		if err != nil {
			return err
		}
		if d.Output == "json" {
			return printJSON(resp)
		}
		fmt.Printf("metadata.version %s\n", resp.GetMetadataVersion())
		for _, f := range slices.Sorted(maps.Keys(resp.GetFeatures())) {
			fmt.Printf("%s %d\n", f, resp.GetFeatures()[f])
		}
		r := resp.GetRewrite()
		switch {
		case r == nil:
			return nil
		case r.GetUnderWay():
			fmt.Printf("Being rewritten from %s to %s: %d of %d shards, %s.\n", r.GetFrom(), r.GetTo(), r.GetShardsDone(), r.GetShards(), rewriting(r))
		default:
			fmt.Printf("Rewritten from %s to %s: %s.\n", r.GetFrom(), r.GetTo(), rewriting(r))
		}
		if r.GetCheckpoint() != "" {
			fmt.Printf("Checkpoint, %s when it was taken:\n  %s\n", size(r.GetCheckpointBytes()), r.GetCheckpoint())
		}
		return showLost(r)
	})
}

type upgradeCommand struct {
	adminFlags

	To string `required:"" placeholder:"VERSION" help:"A name (4.4-IV2), a release (4.4) or a feature level (33)."`
}

// Run raises the version.
func (u *upgradeCommand) Run(ctx context.Context) error {
	return u.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.Upgrade(ctx, &adminpb.UpgradeRequest{To: u.To})
		if err != nil {
			return err
		}
		if u.Output == "json" {
			return printJSON(resp)
		}
		if resp.GetFrom() == resp.GetTo() {
			return u.notYet(fmt.Sprintf("At %s already.", resp.GetTo()))
		}
		return u.notYet(fmt.Sprintf("At %s now, from %s.", resp.GetTo(), resp.GetFrom()))
	})
}
