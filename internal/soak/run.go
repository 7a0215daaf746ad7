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
	other, err := p.decoy(ctx, upstream, filepath.Join(folder, "decoy"))
	if err != nil {
		s.kill()
		return err
	}
	defer other.close()
	return p.against(ctx, s, other, others)
}

// against runs the phases against a kcoord that has started.
func (p plan) against(ctx context.Context, s *server, other *decoy, others *gang) error {
	began := time.Now()
	ended := false
	defer func() {
		if !ended {
			s.kill()
		}
	}()
	f, err := gather(ctx, p, s.addr)
	if err != nil {
		return err
	}
	defer f.close()
	fmt.Printf("%d groups of %d members joined in %s\n", p.groups, p.connections/p.groups, time.Since(began).Round(time.Millisecond))
	sending, stop := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() { f.run(sending); close(sent) }()
	defer func() { stop(); <-sent }()

	if err := f.warm(ctx); err != nil {
		return err
	}
	base, err := s.look(ctx, true)
	if err != nil {
		return err
	}
	heading(os.Stdout, base)
	var phases []phase
	for _, only := range p.habits() {
		for with := range companies {
			ph, err := p.phase(ctx, s, other, f, others, with, only, base)
			if err != nil {
				return errors.Join(err, f.errors(), other.fleet.errors())
			}
			phases = append(phases, ph)
			ph.print(os.Stdout)
		}
	}
	r, err := others.tell(order{})
	if err != nil {
		return err
	}
	fmt.Println()
	for _, name := range slices.Sorted(maps.Keys(r.Acts)) {
		fmt.Printf("%8d × %s\n", r.Acts[name], name)
	}
	fmt.Println()
	ended = true
	return errors.Join(f.errors(), p.verdict(os.Stdout, phases), p.end(ctx, s, f, others))
}

// drainFor is shutdown.timeout.ms, and spare what the end may take beyond it.
const (
	drainFor = 5 * time.Second
	spare    = 2 * time.Second
)

// end stops kcoord while all are at it, the misbehaving ones, too.
func (p plan) end(ctx context.Context, s *server, f *fleet, others *gang) error {
	begun := others.begin(ctx, order{Addr: s.addr, Groups: p.groups, Only: p.only})
	f.ending.Store(true)
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
func (p plan) phase(ctx context.Context, s *server, other *decoy, f *fleet, others *gang, with company, only string, base state) (ph phase, err error) {
	ph.name = [companies]string{"calm", "elsewhere", "bad"}[with]
	if p.each && with == beside {
		ph.name = strings.ReplaceAll(strings.Trim(only, "^$"), `\`, "")
	}
	if with != calm {
		at := [companies]*server{elsewhere: other.server, beside: s}[with]
		if err := others.begin(ctx, order{Addr: at.addr, Groups: p.groups, Only: only}); err != nil {
			return ph, err
		}
	}
	before, err := s.look(ctx, false)
	if err != nil {
		return ph, err
	}
	busy := machineSeconds()
	began, stop := time.Now(), f.measure()
	select {
	case <-ctx.Done():
		return ph, ctx.Err()
	case <-s.exited:
		return ph, s.over("in the middle of a phase")
	case <-time.After(p.duration / time.Duration(int(companies)*p.rounds)):
	}
	ph.tally, ph.took = stop(), time.Since(began)
	ph.busy = (machineSeconds() - busy) / ph.took.Seconds()
	if ph.peak, err = s.look(ctx, false); err != nil {
		return ph, err
	}
	ph.cpu = (ph.peak.cpu - before.cpu) / ph.took.Seconds()
	if with != calm {
		if _, err := others.tell(order{}); err != nil {
			return ph, err
		}
	}
	err = until(ctx, settled, func() error {
		if ph.after, err = s.look(ctx, false); err != nil {
			return err
		}
		return ph.after.differs(base)
	})
	if err != nil {
		return ph, fmt.Errorf("soak: a leak: %w", err)
	}
	ph.after, err = s.look(ctx, true)
	return ph, errors.Join(err, f.errors())
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
