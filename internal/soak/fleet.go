package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// topicName is what all commit offsets of.
const topicName = "soak"

// session is the session timeout of those that behave: long, since one that misses it for a
// pause of this process would say nothing about kcoord.
const session = 2 * time.Minute

// fleet are the clients that behave.
type fleet struct {
	plan
	members []*member // neighbours are of different groups

	tally  atomic.Pointer[tally] // of the phase; nil: nothing is measured
	broken atomic.Int64          // failures so far
	first  atomic.Pointer[error] // of them
	ending atomic.Bool
	all    sync.WaitGroup
}

// gather connects all members and has them join.
func gather(ctx context.Context, p plan, addr string) (*fleet, error) {
	size := p.connections / p.groups
	f := &fleet{plan: p, members: make([]*member, p.connections)}
	turns := make(chan struct{}, 500) // groups at a time
	errs := make(chan error, p.groups)
	for g := range p.groups {
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs <- f.assemble(ctx, addr, g, size)
		}()
	}
	var all []error
	for range p.groups {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	for _, m := range f.members {
		f.all.Go(m.receive)
	}
	return f, nil
}

// assemble makes a group: its members join together until all are of one generation.
func (f *fleet) assemble(ctx context.Context, addr string, g, size int) error {
	errs := make(chan error, size)
	per := f.offsets / f.connections
	for i := range size {
		m := &member{fleet: f, group: fmt.Sprintf("good-%d", g), from: i * per, n: per}
		f.members[i*f.groups+g] = m
		go func() { errs <- m.join(ctx, addr, size) }()
	}
	var all []error
	for range size {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// fail notes that a good client was treated badly.
func (f *fleet) fail(err error) {
	if f.ending.Load() {
		return
	}
	f.broken.Add(1)
	f.first.CompareAndSwap(nil, &err)
}

// errors tells of failures since the start.
func (f *fleet) errors() error {
	n := f.broken.Load()
	if n == 0 {
		return nil
	}
	return fmt.Errorf("soak: %d failures of clients that behave, the first: %w", n, *f.first.Load())
}

// send has the members send what is due, until rest is called, which returns when nothing more is sent.
func (f *fleet) send(ctx context.Context) (rest func()) {
	ctx, stop := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() { f.run(ctx); close(sent) }()
	return func() { stop(); <-sent }
}

// run sends what is due until ctx ends. The k-th heartbeat is the one of member k modulo
// all, and so with the others, so that the rate is the same at all times.
func (f *fleet) run(ctx context.Context) {
	n := len(f.members)
	flows := []*flow{
		{every: f.beatEvery / time.Duration(n), send: (*member).beat},
		{every: f.commitEvery / time.Duration(n), send: (*member).commit},
		{every: f.fetchEvery / time.Duration(n), send: (*member).fetch},
	}
	began := time.Now()
	for ctx.Err() == nil {
		next := flows[0]
		for _, fl := range flows[1:] {
			if fl.due() < next.due() {
				next = fl
			}
		}
		if wait := next.due() - time.Since(began); wait > 0 {
			time.Sleep(wait)
		} else if t := f.tally.Load(); t != nil {
			t.late(-wait)
		}
		next.send(f.members[next.sent%n])
		next.sent++
	}
}

// flow is one kind of request.
type flow struct {
	every time.Duration
	sent  int
	send  func(*member)
}

func (fl *flow) due() time.Duration { return time.Duration(fl.sent) * fl.every }

// measure collects latencies until stop.
func (f *fleet) measure() (stop func() *tally) {
	t := &tally{}
	f.tally.Store(t)
	return func() *tally {
		f.tally.Store(nil)
		return t
	}
}

// close ends all connections.
func (f *fleet) close() {
	f.ending.Store(true)
	for _, m := range f.members {
		m.w.Close()
	}
	f.all.Wait()
}
