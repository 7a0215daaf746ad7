package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// plan is what is asked of a run.
type plan struct {
	kcoord   string
	upstream string // a real broker instead of kfake; its topic must be there
	duration time.Duration
	rounds   int // of a calm phase, one with the others elsewhere and one with them
	listen   string

	connections, groups, offsets       int
	beatEvery, commitEvery, fetchEvery time.Duration // of each member

	only   string  // a regular expression over habits
	within float64 // p99 may be higher by so much; 0: is not judged
	each   bool    // one habit a round instead of all
	keep   bool    // do not remove the folder
}

func main() {
	p := plan{}
	role := flag.String("role", "", "badly: the misbehaving ones, as a process of its own")
	flag.StringVar(&p.kcoord, "kcoord", "kcoord", "binary of kcoord")
	flag.StringVar(&p.upstream, "upstream", "", "broker to put kcoord in front of, instead of one of its own")
	flag.StringVar(&p.listen, "listen", "127.0.0.1:0", "where kcoord listens")
	flag.DurationVar(&p.duration, "duration", 10*time.Minute, "of all phases together")
	flag.IntVar(&p.rounds, "rounds", 10, "of three phases each: without the misbehaving ones, with them at another kcoord on this machine, with them")
	flag.IntVar(&p.connections, "connections", 10_000, "of members, one each")
	flag.IntVar(&p.groups, "groups", 1000, "that share the members")
	flag.IntVar(&p.offsets, "offsets", 100_000, "that the groups share")
	flag.DurationVar(&p.beatEvery, "heartbeat", 3*time.Second, "interval of a member's heartbeats")
	flag.DurationVar(&p.commitEvery, "commit", 5*time.Second, "interval of a member's commits")
	flag.DurationVar(&p.fetchEvery, "fetch", 20*time.Second, "interval at which a member asks for its offsets")
	flag.StringVar(&p.only, "only", "", "habits that are taken, as a regular expression; empty: all")
	flag.BoolVar(&p.each, "each", false, "a round for each habit, in which it is alone: to find out which one hurts")
	flag.Float64Var(&p.within, "within", 0.05, "by how much p99 may be higher with the misbehaving ones; 0: any")
	flag.BoolVar(&p.keep, "keep", false, "keep kcoord's folder and log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *role == "badly" {
		err = misbehave(ctx, os.Stdin, os.Stdout)
	} else {
		err = soak(ctx, p)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// check says what of a plan cannot be.
func (p *plan) check() error {
	switch {
	case p.groups < 1 || p.connections < p.groups || p.connections%p.groups != 0:
		return fmt.Errorf("%d connections are not an equal number of members for each of %d groups", p.connections, p.groups)
	case p.offsets < p.connections || p.offsets%p.connections != 0:
		return fmt.Errorf("%d offsets are not an equal number for each of %d members", p.offsets, p.connections)
	case p.rounds < 1:
		return fmt.Errorf("%d rounds: one is the least", p.rounds)
	}
	if _, err := regexp.Compile(p.only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	return nil
}
