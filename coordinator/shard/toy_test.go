package shard_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// toy is a machine of named registers, kept by entity ("box"): small enough to
// see through, with all that a machine may do.
type toy struct {
	hard map[string]map[string]cell // box → register → value
	last map[string]storage.Offset
	in   map[string]bool // boxes in memory
	soft map[string][]waiter
	due  []alarm
	// evicts: drop every idle box at each durable callback.
	evicts bool
}

type cell struct {
	value string
	at    storage.Offset
}

// waiter is a parked request: it waits for a register's value.
type waiter struct {
	token           machine.Token
	register, value string
}

type alarm struct {
	at            time.Time
	box, register string
}

// ask is put (several registers at once: "a=1,b=2"), get, wait, alarm (writes "rang" when it is due) or echo (an effect).
type ask struct {
	op, box, args string
	after         time.Duration
}

type rec struct {
	box, register, value string
	gone                 bool
}

type out = machine.Output[rec, string, string]

func newToy(evicts bool) *toy {
	return &toy{hard: map[string]map[string]cell{}, last: map[string]storage.Offset{}, in: map[string]bool{}, soft: map[string][]waiter{}, evicts: evicts}
}

func (t *toy) Touches(a ask) (string, bool) { return a.box, true }
func (t *toy) Has(box string) bool          { return t.in[box] }
func (t *toy) Known(box string, headers []rec, pending bool) bool {
	return pending || len(headers) > 0
}
func (t *toy) Loaded(_ time.Time, box string, o *out) {
	t.in[box] = true
	if _, set := t.hard[box]["h"]; set {
		o.Effect("loaded " + box)
	}
}

func (t *toy) Apply(at storage.Offset, r *rec) {
	if r.gone {
		delete(t.hard[r.box], r.register)
	} else {
		if t.hard[r.box] == nil {
			t.hard[r.box] = map[string]cell{}
		}
		t.hard[r.box][r.register] = cell{r.value, at}
	}
	t.last[r.box] = max(t.last[r.box], at)
}

func (t *toy) Handle(now time.Time, in machine.Input[ask], o *out) {
	box := in.Req.box
	switch in.Req.op {
	case "put":
		for _, kv := range strings.Split(in.Req.args, ",") {
			k, v, _ := strings.Cut(kv, "=")
			t.put(box, k, v, o)
		}
		o.Reply(in.Token, "ok")
	case "get":
		o.Reply(in.Token, t.hard[box][in.Req.args].value)
	case "wait":
		k, v, _ := strings.Cut(in.Req.args, "=")
		if t.hard[box][k].value == v {
			o.Reply(in.Token, "at once")
		} else {
			t.soft[box] = append(t.soft[box], waiter{in.Token, k, v})
		}
	case "alarm":
		t.due = append(t.due, alarm{now.Add(in.Req.after), box, in.Req.args})
		slices.SortStableFunc(t.due, func(a, b alarm) int { return a.at.Compare(b.at) })
		o.Reply(in.Token, "set")
	case "echo":
		o.Effect(in.Req.args)
		o.Reply(in.Token, "echoed")
	}
}

func (t *toy) put(box, k, v string, o *out) {
	o.Record(rec{box, k, v, v == ""})
	t.soft[box] = slices.DeleteFunc(t.soft[box], func(w waiter) bool {
		if w.register == k && w.value == v {
			o.Reply(w.token, "waited for "+v)
			return true
		}
		return false
	})
}

func (t *toy) NextTimer() (time.Time, bool) {
	if len(t.due) == 0 {
		return time.Time{}, false
	}
	return t.due[0].at, true
}

func (t *toy) Due() (string, bool) { return t.due[0].box, true }

func (t *toy) Fire(now time.Time, o *out) {
	if a := t.due[0]; !a.at.After(now) {
		t.due = t.due[1:]
		t.put(a.box, a.register, "rang", o)
	}
}

func (t *toy) Evict(durable storage.Offset) {
	if !t.evicts {
		return
	}
	for box := range t.in {
		if len(t.soft[box]) == 0 && t.last[box] < durable {
			delete(t.in, box)
			delete(t.hard, box)
		}
	}
}

// Dump is the hard state in words.
func (t *toy) Dump(w io.Writer) {
	for _, box := range slices.Sorted(maps.Keys(t.hard)) {
		for _, k := range slices.Sorted(maps.Keys(t.hard[box])) {
			fmt.Fprintf(w, "%s.%s=%s@%d\n", box, k, t.hard[box][k].value, t.hard[box][k].at)
		}
	}
}

type toyCodec struct{}

func (toyCodec) Settle(*rec) {}

func (toyCodec) Append(key, value []byte, r *rec) ([]byte, []byte, bool) {
	return append(key, r.box+"/"+r.register...), append(value, r.value...), r.gone
}

func (toyCodec) Txn(*rec) storage.Txn { return storage.Txn{} }

func (toyCodec) Decode(r storage.Record) rec {
	box, register, _ := strings.Cut(string(r.Key), "/")
	return rec{box, register, string(r.Value), r.Value == nil}
}

func toyIndex(_ storage.ShardID, key []byte) ([]byte, storage.Class) {
	box, register, ok := bytes.Cut(key, []byte("/"))
	switch {
	case !ok:
		return nil, storage.Orphan
	case string(register) == "h":
		return box, storage.Header
	}
	return box, storage.Body
}
