// Package machine is the contract between the state machines of the
// coordinator (groups, transactions) and the runner that makes them durable.
//
// A machine decides and the runner acts. Handle, Fire and Loaded look at the
// state, put records, replies and effects into an Output, and change only soft
// state: parked requests, timers, sessions, rebalances under way. Hard state is
// what records rebuild, and Apply alone writes it. The runner applies the
// records of a step at once and lets the step's replies and effects out when
// the log says that everything applied so far is on disk. So a machine never
// knows of the disk, a reply never tells what a crash could undo, and after a
// crash Apply over the durable records gives the hard state that was.
//
// A machine is deterministic: the time is handed in, randomness comes from a
// source given at its construction, and no order depends on a map's.
package machine

import (
	"time"

	"github.com/kcoord/kcoord/storage"
)

// Token names one request that waits for its reply. It is the runner's; a
// machine keeps it while the request is parked.
type Token uint64

// Input is one request.
type Input[Req any] struct {
	Token Token
	Req   Req
}

// Reply answers the request of its token.
type Reply[Resp any] struct {
	Token Token
	Resp  Resp
}

// Output takes what a step decided, in order. The runner owns and reuses it.
type Output[Rec, Resp, Eff any] struct {
	Records []Rec
	Replies []Reply[Resp]
	Effects []Eff
}

// Record adds a record.
func (o *Output[Rec, Resp, Eff]) Record(r Rec) { o.Records = append(o.Records, r) }

// Next adds an empty record and returns it to be filled, for records that are large and
// many. It is valid until the next one is added.
func (o *Output[Rec, Resp, Eff]) Next() *Rec {
	if n := len(o.Records); n < cap(o.Records) {
		o.Records = o.Records[:n+1] // Reset has cleared it
	} else {
		var none Rec
		o.Records = append(o.Records, none)
	}
	return &o.Records[len(o.Records)-1]
}

// Reply adds a reply.
func (o *Output[Rec, Resp, Eff]) Reply(t Token, r Resp) {
	o.Replies = append(o.Replies, Reply[Resp]{t, r})
}

// Effect adds an effect.
func (o *Output[Rec, Resp, Eff]) Effect(e Eff) { o.Effects = append(o.Effects, e) }

// Reset empties the output and keeps its memory.
func (o *Output[Rec, Resp, Eff]) Reset() {
	clear(o.Records)
	clear(o.Replies)
	clear(o.Effects)
	o.Records, o.Replies, o.Effects = o.Records[:0], o.Replies[:0], o.Effects[:0]
}

// Machine is the state machine of one shard. Its methods are called by one
// caller at a time.
//
// State is read, not replayed: an entity (a group) is in memory only from its
// first use on. Before Handle the runner loads what Touches names; before Fire
// what Due names. Entities with no timer of their own and nothing parked may be
// dropped by Evict and are loaded again at their next use.
type Machine[Req, Rec, Resp, Eff any] interface {
	// Touches says which entity a request is about, if it is about one.
	Touches(req Req) (entity string, one bool)
	// Has says whether an entity is in memory, be it as one that does not exist.
	Has(entity string) bool
	// Known tells, when the shard opens, of an entity that the log holds, with its
	// header records and whether it has pending ones. It returns true when the
	// entity must be loaded now since it needs a timer (a group with members, an open
	// transaction), or since the end of a transaction will concern it.
	Known(entity string, headers []Rec, pending bool) (load bool)
	// Apply makes a record part of the hard state. It is the only writer of it. A
	// control record concerns all entities that have pending records of its
	// producer; those are in memory. The record is the caller's, and is used again.
	Apply(offset storage.Offset, rec *Rec)
	// Loaded ends the loading of an entity, whose records have all been applied:
	// it rebuilds the soft state and emits effects that are still open.
	Loaded(now time.Time, entity string, out *Output[Rec, Resp, Eff])
	// Handle decides on a request. A request without a reply in out is parked:
	// a later step replies to its token.
	Handle(now time.Time, in Input[Req], out *Output[Rec, Resp, Eff])
	// NextTimer is when Fire is due, if ever.
	NextTimer() (time.Time, bool)
	// Due names the entity that the next Fire is about, if it is about one: it
	// must be in memory before.
	Due() (entity string, one bool)
	// Fire acts on the earliest timer that is due, if any.
	Fire(now time.Time, out *Output[Rec, Resp, Eff])
	// Evict drops clean idle entities whose records all lie below durable,
	// the oldest first, until at most its own bound is left in memory.
	Evict(durable storage.Offset)
}

// Shifter is a Machine with timers that are about time passed rather than about a date.
type Shifter interface {
	// Shift moves those timers, since the clock has jumped by so much.
	Shift(by time.Duration)
}

// Codec turns a machine's records into Kafka's bytes and back.
type Codec[Rec any] interface {
	// Settle takes out of a record that was just decided what the version that it
	// will be written in has no place for, so that what is applied is what the log
	// gives back. What the record points to it does not change.
	Settle(rec *Rec)
	// Append appends the key and value of a settled record to the slices given.
	// tombstone says that there is no value.
	Append(key, value []byte, rec *Rec) (k, v []byte, tombstone bool)
	// Txn is the transaction that the record belongs to.
	Txn(rec *Rec) storage.Txn
	// Decode reads a record, and keeps no reference to its bytes. It never fails:
	// what cannot be read becomes a record that says so, and puts its entity into
	// quarantine when applied.
	Decode(rec storage.Record) Rec
}
