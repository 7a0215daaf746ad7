// Command kcoord is a group and transaction coordinator that speaks Kafka's
// protocol and runs as a sidecar in front of a broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line.
type commands struct {
	Serve     serveCommand     `cmd:"" help:"Coordinate groups in front of a broker."`
	Dev       devCommand       `cmd:"" help:"The same with a data plane in process, for a laptop."`
	Demo      demoCommand      `cmd:"" help:"Show how a group's offsets survive a kill, in a few seconds."`
	Groups    groupsCommand    `cmd:"" help:"See and steer groups, over the admin API of a running kcoord."`
	Offsets   offsetsCommand   `cmd:"" help:"See and change groups' offsets, over the same."`
	Txns      txnsCommand      `cmd:"" help:"See transactions, and abort those that nobody else will, over the same."`
	Downgrade downgradeCommand `cmd:"" help:"Go back to an older metadata.version: a plan first."`
	Upgrade   upgradeCommand   `cmd:"" help:"Raise the finalized metadata.version."`
	Check     checkCommand     `cmd:"" help:"Say beforehand what would not work in front of a broker."`
	Config    configCommand    `cmd:"" help:"Look at settings."`
	Record    recordCommand    `cmd:"" help:"Look at Kafka's coordinator records."`
	Versions  versionsCommand  `cmd:"" help:"Print Kafka's metadata versions and what each changes."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

// Exit codes.
const (
	exitFailure = 1 // something went wrong
	exitMistake = 2 // the user can mend it: the message says how
	exitRefused = 3 // kcoord would not do it: a group in use, a plan that is out of date
)

// mistake is an error that the user made or can mend.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	parser := kong.Must(&commands{}, kong.Name("kcoord"),
		kong.Description("A group coordinator that speaks Kafka's protocol and stands apart from the broker."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	call, err := parser.Parse(args)
	if err != nil {
		where := ""
		if pe := (*kong.ParseError)(nil); errors.As(err, &pe) && pe.Context.Selected() != nil {
			where = " " + pe.Context.Selected().Path()
		}
		return fail(mistake{fmt.Errorf("%w (kcoord%s --help tells more)", err, where)})
	}
	ctx, stop := interruptible(call.Command() != "demo") // which has to clean up, and does so in a second
	defer stop()
	call.BindTo(ctx, (*context.Context)(nil))
	return fail(call.Run())
}

// fail prints an error, if there is one, in one line.
func fail(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "kcoord: %s\n", oneLine(err))
	if errors.As(err, &mistake{}) {
		return exitMistake
	}
	if errors.As(err, &refusal{}) {
		return exitRefused
	}
	return exitFailure
}

// interruptible is a context that ends at the first signal to end; the second
// one ends the process, where it may.
func interruptible(mayEnd bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		cancel(interrupted{s})
		if !mayEnd {
			return
		}
		s = <-signals
		fmt.Fprintf(os.Stderr, "kcoord: %v for the second time: ended at once\n", s)
		os.Exit(exitFailure)
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// interrupted says that the user asked for the end.
type interrupted struct{ os.Signal }

func (i interrupted) Error() string { return "interrupted (" + i.Signal.String() + ")" }
