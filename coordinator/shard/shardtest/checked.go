package shardtest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// Dumper is a machine that can write its hard state in words.
type Dumper[Req, Rec, Resp, Eff any] interface {
	machine.Machine[Req, Rec, Resp, Eff]
	Dump(w io.Writer)
}

// Checked is a machine that panics when a decision writes hard state, which
// only Apply may, or is asked about an entity that is not in memory.
type Checked[Req, Rec, Resp, Eff any] struct {
	Dumper[Req, Rec, Resp, Eff]
}

func (c Checked[Req, Rec, Resp, Eff]) hard() string {
	var b strings.Builder
	c.Dump(&b)
	return b.String()
}

func (c Checked[Req, Rec, Resp, Eff]) unchanged(what string, decide func()) {
	before := c.hard()
	decide()
	if after := c.hard(); after != before {
		panic(fmt.Sprintf("%s wrote hard state\nbefore:\n%s\nafter:\n%s", what, before, after))
	}
}

func (c Checked[Req, Rec, Resp, Eff]) need(entity string, one bool) {
	if one && !c.Has(entity) {
		panic(fmt.Sprintf("entity %q is not in memory", entity))
	}
}

// Handle is Handle, checked.
func (c Checked[Req, Rec, Resp, Eff]) Handle(now time.Time, in machine.Input[Req], out *machine.Output[Rec, Resp, Eff]) {
	c.need(c.Touches(in.Req))
	c.unchanged("Handle", func() { c.Dumper.Handle(now, in, out) })
}

// Fire is Fire, checked.
func (c Checked[Req, Rec, Resp, Eff]) Fire(now time.Time, out *machine.Output[Rec, Resp, Eff]) {
	c.need(c.Due())
	c.unchanged("Fire", func() { c.Dumper.Fire(now, out) })
}

// Loaded is Loaded, checked.
func (c Checked[Req, Rec, Resp, Eff]) Loaded(now time.Time, entity string, out *machine.Output[Rec, Resp, Eff]) {
	c.unchanged("Loaded", func() { c.Dumper.Loaded(now, entity, out) })
	c.need(entity, true)
}

// watched tells a harness how far its log is durable, and which log it is.
type watched struct {
	storage.Backend
	durable *storage.Offset
	log     *storage.Log
}

// Open opens the shard and listens in on its durable callback.
func (w watched) Open(id storage.ShardID, durable func(storage.Offset, error)) (storage.Log, error) {
	log, err := w.Backend.Open(id, func(end storage.Offset, err error) {
		if err == nil {
			*w.durable = end
		}
		durable(end, err)
	})
	if err == nil {
		*w.durable, *w.log = log.End(), log
	}
	return log, err
}
