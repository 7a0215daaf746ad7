// Package shardtest drives a shard by script: on an in-memory log whose
// durability it holds back, on fake time, with a transcript of what leaves the
// shard and when. Nothing in it sleeps.
package shardtest

import (
	"fmt"
	"sort"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/memlog"
)

// Start is the fake time at which a harness begins.
var Start = time.UnixMilli(1_700_000_000_000).UTC()

// Options says what the shard under test is made of.
type Options[Req, Rec, Resp, Eff any] struct {
	Index storage.Index
	Codec machine.Codec[Rec]
	New   func() machine.Machine[Req, Rec, Resp, Eff]
}

// Harness is one shard, its log and its clock.
type Harness[Req, Rec, Resp, Eff any] struct {
	Log     *memlog.Backend
	Shard   *shard.Shard[Req, Rec, Resp, Eff]
	Machine machine.Machine[Req, Rec, Resp, Eff] // the one made last
	Now     time.Time
	// Answers are what requests were given: by name, each once.
	Answers map[string]Answer[Resp]
	// Said takes what happened, in order, until the caller empties it.
	Said []string
	// Show prints a response.
	Show func(Resp) string
	// Durable is the offset after the last durable record.
	Durable storage.Offset
	// Answered, if set, is called before an answer is noted.
	Answered func(name string, r Resp, err error)

	o    Options[Req, Rec, Resp, Eff]
	log  storage.Log // opened last
	next time.Time   // when Fire is due; zero: never
	open map[string]bool
}

// Answer is what a request was given.
type Answer[Resp any] struct {
	Resp Resp
	Err  error
}

// New returns a harness whose shard has an empty log. Its appends become durable
// when Sync is called.
func New[Req, Rec, Resp, Eff any](o Options[Req, Rec, Resp, Eff]) *Harness[Req, Rec, Resp, Eff] {
	h := &Harness[Req, Rec, Resp, Eff]{
		o: o, Log: memlog.NewManual(o.Index), Now: Start,
		Answers: map[string]Answer[Resp]{}, open: map[string]bool{},
		Show: func(r Resp) string { return fmt.Sprintf("%+v", r) },
	}
	h.start()
	return h
}

func (h *Harness[Req, Rec, Resp, Eff]) start() {
	h.next, h.log = time.Time{}, nil
	h.Shard = shard.New(shard.Options[Req, Rec, Resp, Eff]{
		Backend: watched{h.Log, &h.Durable, &h.log},
		Codec:   h.o.Codec,
		New: func() machine.Machine[Req, Rec, Resp, Eff] {
			h.Machine = h.o.New()
			return h.Machine
		},
		Now:    func() time.Time { return h.Now },
		Effect: func(e Eff) { h.say("effect %+v", e) },
		Timer:  func(at time.Time) { h.next = at },
		Failed: func(err error) { h.say("failed: %v", err) },
	})
}

func (h *Harness[Req, Rec, Resp, Eff]) say(format string, args ...any) {
	h.Said = append(h.Said, fmt.Sprintf(format, args...))
}

// Ask sends a request under a name that was not used before.
func (h *Harness[Req, Rec, Resp, Eff]) Ask(name string, req Req) {
	h.open[name] = true
	h.Shard.Do(req, func(r Resp, err error) {
		if !h.open[name] {
			panic(fmt.Sprintf("a second answer to %s: %+v, %v", name, r, err))
		}
		delete(h.open, name)
		if h.Answered != nil {
			h.Answered(name, r, err)
		}
		h.Answers[name] = Answer[Resp]{r, err}
		if err != nil {
			h.say("%s: %v", name, err)
		} else {
			h.say("%s: %s", name, h.Show(r))
		}
	})
}

// Open is which requests have no answer yet, sorted.
func (h *Harness[Req, Rec, Resp, Eff]) Open() []string {
	var out []string
	for n := range h.open {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Sync makes durable what was appended, as far as the log is not held.
func (h *Harness[Req, Rec, Resp, Eff]) Sync() { h.Log.Sync() }

// End is the offset that the next record will have.
func (h *Harness[Req, Rec, Resp, Eff]) End() storage.Offset {
	if h.log == nil {
		return h.Durable
	}
	return h.log.End()
}

// Replay applies every durable record in the order of the log, as nothing but
// a test does.
func (h *Harness[Req, Rec, Resp, Eff]) Replay(apply func(storage.Offset, *Rec)) error {
	if err := h.Shard.Open(); err != nil {
		return err
	}
	return h.log.Read(0, func(at storage.Offset, r storage.Record) error {
		rec := h.o.Codec.Decode(r)
		apply(at, &rec)
		return nil
	})
}

// Advance lets time pass and fires each timer at its time.
func (h *Harness[Req, Rec, Resp, Eff]) Advance(d time.Duration) {
	until := h.Now.Add(d)
	for !h.next.IsZero() && !h.next.After(until) {
		h.Now = later(h.Now, h.next)
		at := h.next
		h.Shard.Fire()
		if h.next.Equal(at) && !at.After(h.Now) {
			panic(fmt.Sprintf("a timer due at %s is still due after Fire", at))
		}
	}
	h.Now = until
}

// Crash drops what is not durable and starts again; requests without an answer
// never get one, since their connections are gone.
func (h *Harness[Req, Rec, Resp, Eff]) Crash() {
	clear(h.open)
	h.Log = h.Log.Crash()
	h.start()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
