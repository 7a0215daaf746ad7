package metadataversion

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/table"
	"github.com/kcoord/kcoord/txnlog"
)

// Widths that names and keys are cut to in texts: they are clients' choice, up to 32 KB of it.
const (
	nameWidth = 60
	keyWidth  = 160
)

// asName and asKey write what clients chose, so that it breaks no line and commands no terminal.
func asName(s string) string { return table.Fit(table.Plain(s), nameWidth) }
func asKey(s string) string  { return table.Fit(table.Plain(s), keyWidth) }

// Plan is what a downgrade would do to what is stored.
type Plan struct {
	From, To Target
	// Between are the versions above To, up to From, that are not backward compatible.
	Between []Version
	// Via is the release to go through first, of Kafka, where To's release does not tolerate newer records; else zero.
	Via Release

	Records, Rewritten, Deleted int64
	Losses                      []Loss // sorted by log, type and field
	Ignored                     []Loss // fields that stay in place and that the target does not look at
	FatalClients                int64
	Fatal                       []Fatal // the first of them
}

// Loss is one thing that records of one type lose.
type Loss struct {
	Log          Log
	Type         int16 // the key's; -1: not even that can be read
	What         Fields
	Records      int64
	Entities     int  // groups or transactional ids; 0 where the keys don't say
	MoreEntities bool // Entities is only the least
	Top          []EntityCount
	Examples     []Example

	byEntity map[string]int64
	names    int // bytes of the entities' names
}

// EntityCount is a group or transactional id and how many of its records are concerned.
type EntityCount struct {
	Entity  string
	Records int64
}

// Example is one record.
type Example struct {
	Entity  string
	Shard   int32
	Key     string // Kafka's JSON of it, or hex
	Version int16  // of the value as stored
	Problem string // of a damaged one
}

// Fatal is a client that has to give up: a group's member or a producer.
type Fatal struct {
	Entity        string // group or transactional id
	Member        string // empty for producers
	ProducerID    int64
	InTransaction bool
}

// TypeName is Kafka's name of the record's value.
func (l Loss) TypeName() string {
	name := groupmeta.Type(l.Type).ValueName()
	if l.Log == TransactionsLog {
		name = txnlog.Type(l.Type).ValueName()
	}
	if name == "" {
		return fmt.Sprintf("record type %d", l.Type)
	}
	return name
}

// Reason is why a downgrade is refused: one loss, as an error.
type Reason struct {
	Loss
	To Target
}

// Error is one line.
func (r *Reason) Error() string {
	of := "group"
	if r.Log == TransactionsLog {
		of = "transactional id"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s%s %s", r.TypeName(), table.Count(r.Records, "record"), r.entities(of), r.verb())
	if len(r.Examples) > 0 {
		e := r.Examples[0]
		fmt.Fprintf(&b, ", for example %s", asKey(e.Key))
		if e.Problem != "" {
			fmt.Fprintf(&b, " (%s)", asKey(e.Problem))
		}
	}
	return b.String()
}

// Unwrap makes errors.Is(err, ErrLossy) hold.
func (r *Reason) Unwrap() error { return ErrLossy }

func (r *Reason) verb() string {
	switch r.What {
	case WholeRecord:
		return fmt.Sprintf("cannot be read by %s and would be deleted", r.To)
	case Damaged:
		return "cannot be read by any version and would be deleted"
	}
	return fmt.Sprintf("would lose %s at %s", r.What.name(), r.To)
}

func (l Loss) entities(of string) string {
	switch n := table.Count(int64(l.Entities), of); {
	case l.Entities == 0:
		return ""
	case l.MoreEntities:
		return " of at least " + n
	default:
		return " of " + n
	}
}

// Lossy says whether anything would be lost.
func (p *Plan) Lossy() bool { return len(p.Losses) > 0 }

// Reasons are the losses as errors.
func (p *Plan) Reasons() []*Reason {
	reasons := make([]*Reason, len(p.Losses))
	for i, l := range p.Losses {
		reasons[i] = &Reason{l, p.To}
	}
	return reasons
}

// Err is nil where nothing is lost, else a *multierror.Error of every *[Reason] at once.
func (p *Plan) Err() error {
	var all *multierror.Error
	for _, r := range p.Reasons() {
		all = multierror.Append(all, r)
	}
	return all.ErrorOrNil()
}

// Steps is the way to a release that does not tolerate newer records, or none.
func (p *Plan) Steps() []string {
	if p.Via == (Release{}) {
		return nil
	}
	first := fmt.Sprintf("kcoord downgrade --to %s, and run Kafka %s, which skips record types and tagged fields that it does not know (KIP-915)", p.Via, p.Via)
	if p.Via.last.Release() == p.To.Release.last.Release() && p.To.Release.Patch < 0 {
		return []string{first, fmt.Sprintf("stay there: Kafka %s before %s fails on a partition that holds one newer record, and serves it empty", p.To.Release, p.Via)}
	}
	return []string{first, fmt.Sprintf("once its log is compacted, kcoord downgrade --to %s", target(p.To))}
}

// target is how the command line takes it.
func target(t Target) string {
	if t.Release.Patch >= 0 {
		return t.Release.String()
	}
	return t.Version.String()
}

// WriteTo writes the report as text.
func (p *Plan) WriteTo(w io.Writer) (int64, error) {
	out := &counting{w: bufio.NewWriter(w)}
	fmt.Fprintf(out, "From %s to %s: %s, %d to rewrite, %d to delete.\n", p.From, p.To, table.Count(p.Records, "record"), p.Rewritten, p.Deleted)
	for f := range features {
		if from, to := p.From.Levels[f], p.To.Levels[f]; from != to {
			fmt.Fprintf(out, "  %s goes from %d to %d\n", f, from, to)
		}
	}
	if len(p.Between) > 0 {
		fmt.Fprintln(out, "Versions between that are not backward compatible:")
		for _, v := range p.Between {
			fmt.Fprintf(out, "  %s: %s\n", v, strings.Join(v.WhyNotCompatible(), "; "))
		}
	}
	if !p.Lossy() {
		fmt.Fprintln(out, "Nothing would be lost.")
	} else {
		fmt.Fprintln(out, "Would be lost:")
		for _, r := range p.Reasons() {
			fmt.Fprintf(out, "  %v\n", r)
			for _, t := range r.Top {
				fmt.Fprintf(out, "    %8d  %s\n", t.Records, asName(t.Entity))
			}
			switch more := r.Entities - len(r.Top); {
			case r.MoreEntities:
				fmt.Fprintf(out, "              and at least %d more\n", more)
			case more > 0:
				fmt.Fprintf(out, "              and %d more\n", more)
			}
		}
	}
	for _, l := range p.Ignored {
		fmt.Fprintf(out, "Kept, but ignored by %s and dropped by its next write: %s of %s\n", p.To, l.What.name(), table.Count(l.Records, l.TypeName()))
	}
	p.writeClients(out)
	p.writeSteps(out)
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.n, out.err
}

func (p *Plan) writeClients(out io.Writer) {
	if p.FatalClients == 0 {
		return
	}
	fmt.Fprintf(out, "Clients that would fail with Kafka %s, %d:\n", p.To.Release, p.FatalClients)
	for _, f := range p.Fatal {
		switch {
		case f.Member != "":
			fmt.Fprintf(out, "  member %s of group %s\n", asName(f.Member), asName(f.Entity))
		case f.InTransaction:
			fmt.Fprintf(out, "  producer %d of transactional id %s, in a transaction\n", f.ProducerID, asName(f.Entity))
		default:
			fmt.Fprintf(out, "  producer %d of transactional id %s\n", f.ProducerID, asName(f.Entity))
		}
	}
	if more := p.FatalClients - int64(len(p.Fatal)); more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// writeSteps says whether the target's release copes with newer records, and how to get there where it does not.
func (p *Plan) writeSteps(out io.Writer) {
	steps := p.Steps()
	switch {
	case p.To.Version >= p.From.Version:
	case len(steps) == 0:
		fmt.Fprintf(out, "Kafka %s tolerates newer records (KIP-915).\n", p.To.Release)
	default:
		fmt.Fprintf(out, "Kafka %s does not tolerate newer records. By way of a release that does:\n", p.To.Release)
	}
	for i, s := range steps {
		fmt.Fprintf(out, "  step %d: %s.\n", i+1, s)
	}
}

// counting is a writer for WriteTo's answer.
type counting struct {
	w   *bufio.Writer
	n   int64
	err error
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	if c.err == nil {
		c.err = err
	}
	return n, err
}
