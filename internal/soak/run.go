package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// company is where the misbehaving ones are in a phase.
type company int

const (
	calm      company = iota // they rest
	elsewhere                // at another kcoord on this machine: what p99 is then, the machine does
	beside                   // where those that behave are
	companies
)

// run is one of soak, and who takes part.
type run struct {
	plan
	server *server
	decoy  *decoy
	fleet  *fleet
	others *gang
	base   state // of server at rest
}

// phase is what was seen of one.
type phase struct {
	name  string
	took  time.Duration
	tally *tally
	cpu   float64 // of kcoord, in cores
	busy  float64 // all of the machine
	peak  state   // at its end, before those who misbehave are told to stop
	after state   // when kcoord is as before
}

// settled is how long it is waited until nothing of those who misbehaved is left: their
// sessions and transactions take seconds to end, connections none.
const settled = 90 * time.Second

func soak(ctx context.Context, p plan) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	debug.SetGCPercent(2000) // our own collections would be seen in the latencies
	folder, err := os.MkdirTemp("", "kcoord-soak-")
	if err != nil {
		return err
	}
	defer func() {
		switch {
		case p.keep || err != nil:
			fmt.Println("kept:", folder)
		default:
			err = os.RemoveAll(folder)
		}
	}()
	others, err := hire()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.dismiss()) }()
	upstream := p.upstream
	if upstream == "" {
		upstream = others.broker
	}
	s, err := start(ctx, p, upstream, filepath.Join(folder, "kcoord"))
	if err != nil {
		return err
	}
	defer s.kill() // should it not have been stopped
	other, err := p.decoy(ctx, upstream, filepath.Join(folder, "decoy"))
	if err != nil {
		return err
	}
	defer other.close()
	r := &run{plan: p, server: s, decoy: other, others: others}
	return r.all(ctx)
}

// all gathers those that behave, and runs the phases.
func (r *run) all(ctx context.Context) (err error) {
	began := time.Now()
	if r.fleet, err = gather(ctx, r.plan, r.server.addr); err != nil {
		return err
	}
	f := r.fleet
	defer f.close()
	fmt.Printf("%d groups of %d members joined in %s\n", r.groups, r.connections/r.groups, time.Since(began).Round(time.Millisecond))
	defer f.send(ctx)()
	if err := f.warm(ctx); err != nil {
		return err
	}
	if r.base, err = r.server.look(ctx, true); err != nil {
		return err
	}
	heading(os.Stdout, r.base)
	phases, err := r.play(ctx)
	if err != nil {
		return errors.Join(err, f.errors(), r.decoy.fleet.errors())
	}
	did, err := r.others.tell(order{})
	if err != nil {
		return err
	}
	fmt.Println()
	for _, name := range slices.Sorted(maps.Keys(did.Acts)) {
		fmt.Printf("%8d × %s\n", did.Acts[name], name)
	}
	fmt.Println()
	return errors.Join(f.errors(), r.verdict(os.Stdout, phases), r.end(ctx))
}

// play runs one phase after another.
func (r *run) play(ctx context.Context) (phases []phase, err error) {
	for _, only := range r.habits() {
		for with := range companies {
			ph, err := r.phase(ctx, with, only)
			if err != nil {
				return nil, err
			}
			phases = append(phases, ph)
			ph.print(os.Stdout)
		}
	}
	return phases, nil
}

// drainFor is shutdown.timeout.ms, and spare what the end may take beyond it.
const (
	drainFor = 5 * time.Second
	spare    = 2 * time.Second
)

// end stops kcoord while all are at it, the misbehaving ones, too.
func (r *run) end(ctx context.Context) error {
	s := r.server
	begun := r.others.begin(ctx, order{Addr: s.addr, Groups: r.groups, Only: r.only})
	r.fleet.ending.Store(true)
	took, err := s.stop()
	fmt.Printf("kcoord ended %s after SIGTERM, under all of that load; shutdown.timeout.ms is %s\n", took.Round(time.Millisecond), drainFor)
	switch {
	case err != nil:
		err = fmt.Errorf("soak: kcoord's end (see %s): %w", s.log, err)
	case took > drainFor+spare:
		err = fmt.Errorf("soak: kcoord took %s to end", took)
	}
	return errors.Join(begun, err)
}

// habits are those of each round, as regular expressions.
func (p plan) habits() (of []string) {
	if !p.each {
		return slices.Repeat([]string{p.only}, p.rounds)
	}
	only := regexp.MustCompile(p.only)
	for _, h := range habits {
		if only.MatchString(h.name) {
			of = append(of, "^"+regexp.QuoteMeta(h.name)+"$")
		}
	}
	return of
}

// warm waits until each member has committed: then all offsets are there.
func (f *fleet) warm(ctx context.Context) error {
	return until(ctx, 2*f.commitEvery+patience, func() error {
		if err := f.errors(); err != nil {
			return err
		}
		missing := 0
		for _, m := range f.members {
			m.mu.Lock()
			if m.acked == 0 {
				missing++
			}
			m.mu.Unlock()
		}
		if missing > 0 {
			return fmt.Errorf("soak: %d members have no acknowledged commit", missing)
		}
		return nil
	})
}

// phase runs one, and waits until kcoord is as before.
func (r *run) phase(ctx context.Context, with company, only string) (ph phase, err error) {
	s := r.server
	ph.name = [companies]string{"calm", "elsewhere", "bad"}[with]
	if r.each && with == beside {
		ph.name = strings.ReplaceAll(strings.Trim(only, "^$"), `\`, "")
	}
	if with != calm {
		at := [companies]*server{elsewhere: r.decoy.server, beside: s}[with]
		if err := r.others.begin(ctx, order{Addr: at.addr, Groups: r.groups, Only: only}); err != nil {
			return ph, err
		}
	}
	if err := r.measure(ctx, &ph); err != nil {
		return ph, err
	}
	if with != calm {
		if _, err := r.others.tell(order{}); err != nil {
			return ph, err
		}
	}
	err = until(ctx, settled, func() error {
		if ph.after, err = s.look(ctx, false); err != nil {
			return err
		}
		return ph.after.differs(r.base)
	})
	if err != nil {
		return ph, fmt.Errorf("soak: a leak: %w", err)
	}
	ph.after, err = s.look(ctx, true)
	return ph, errors.Join(err, r.fleet.errors())
}

// measure takes down what is seen while a phase lasts.
func (r *run) measure(ctx context.Context, ph *phase) error {
	s := r.server
	before, err := s.look(ctx, false)
	if err != nil {
		return err
	}
	busy := machineSeconds()
	began, stop := time.Now(), r.fleet.measure()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.exited:
		return s.over("in the middle of a phase")
	case <-time.After(r.duration / time.Duration(int(companies)*r.rounds)):
	}
	ph.tally, ph.took = stop(), time.Since(began)
	ph.busy = (machineSeconds() - busy) / ph.took.Seconds()
	if ph.peak, err = s.look(ctx, false); err != nil {
		return err
	}
	ph.cpu = (ph.peak.cpu - before.cpu) / ph.took.Seconds()
	return nil
}

// Slack is what may differ without being a leak: goroutines and files of pebble at work, of
// the scrape itself.
const (
	slackGoroutines = 30
	slackFiles      = 40
	slackEntries    = 1000 // what the misbehaving ones have committed or asked for, under names that come again
)

// differs says what there is more of than before.
func (st state) differs(base state) (err error) {
	for _, one := range []struct {
		what           string
		is, was, slack int
	}{
		{"connections", st.connections, base.connections, 0},
		{"goroutines", st.goroutines, base.goroutines, slackGoroutines},
		{"open files", st.files, base.files, slackFiles},
		{"groups and offsets in memory", st.entries, base.entries, slackEntries},
	} {
		if one.is > one.was+one.slack {
			err = errors.Join(err, fmt.Errorf("%s: %d, and were %d", one.what, one.is, one.was))
		}
	}
	return err
}

func heading(w io.Writer, base state) {
	fmt.Fprintf(w, "at rest: %d connections, %d goroutines, %d files, %d groups and offsets, heap %.0f MB, RSS %.0f MB\n\n",
		base.connections, base.goroutines, base.files, base.entries, base.heap, base.rss)
	fmt.Fprintln(w, "     p50 ms        p99 ms             cores  connec- gorou-       heap  RSS")
	fmt.Fprintln(w, "  beat commit   beat commit  fetch kcoord all tions  tines  files  MB   MB")
}

func (ph *phase) print(w io.Writer) {
	p50, p99 := ph.tally.quantiles(0.5), ph.tally.quantiles(0.99)
	fmt.Fprintf(w, "%6.2f %6.2f %6.2f %6.2f %6.2f %5.2f %4.2f %6d %6d %6d %4.0f %4.0f %s\n", p50[heartbeat], p50[commit],
		p99[heartbeat], p99[commit], p99[fetch], ph.cpu, ph.busy, ph.peak.connections, ph.peak.goroutines, ph.peak.files, ph.after.heap, ph.peak.rss, ph.name)
}
