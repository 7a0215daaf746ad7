package shard

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// Errors that a reply may be given instead of a response.
var (
	// ErrLost says that the shard failed, or was closed, before the step was
	// durable. Whether it took effect is unknown.
	ErrLost = errors.New("shard: lost before the answer was durable")
	// ErrLoading says that the shard or the entity could not be read. Asking again may help.
	ErrLoading = errors.New("shard: cannot be read")
)

// Options says what a shard is made of.
type Options[Req, Rec, Resp, Eff any] struct {
	ID      storage.ShardID
	Backend storage.Backend
	Codec   machine.Codec[Rec]
	// New makes an empty machine, at each opening.
	New func() machine.Machine[Req, Rec, Resp, Eff]
	Now func() time.Time
	// Passed is a clock that nobody sets, by which jumps of Now are found: a
	// machine.Shifter is told of them. Nil: Now never jumps.
	Passed func() time.Duration
	// Effect carries out an effect. It must not block. Nil where the machine has none.
	Effect func(Eff)
	// Timer is told, under the shard's lock, when the next Fire is due. It must not block.
	Timer func(at time.Time)
	// Stepped is called, under the shard's lock, after each step and when the machine is
	// dropped (nil). It must not block. Nil where nobody watches.
	Stepped func(m machine.Machine[Req, Rec, Resp, Eff])
	// Opened is told, under the shard's lock, how long an opening took that went well. Nil
	// where nobody asks.
	Opened func(took time.Duration)
	// Failed is told of a failed append, a failed opening or an entity that could not be
	// read; of the same not more than every ten seconds.
	Failed func(err error)
}

// Shard runs the machine of one shard.
type Shard[Req, Rec, Resp, Eff any] struct {
	o Options[Req, Rec, Resp, Eff]

	mu      sync.Mutex
	epoch   uint64 // of the opening; callbacks of earlier ones are ignored
	closed  bool
	m       machine.Machine[Req, Rec, Resp, Eff] // nil: not open
	log     storage.Log
	durable storage.Offset
	// end is the log's end after what was appended here. The log's own is not asked: it
	// goes back when an append fails, before the shard is told, and what was applied
	// meanwhile must not be answered as if it were durable.
	end    storage.Offset
	token  machine.Token
	parked map[machine.Token]func(Resp, error)
	gated  queue[Resp, Eff]
	due    time.Time // what Timer was last told
	jumps  Jumps
	// What unreadable told last, and when to tell it again.
	said     string
	sayAgain time.Time

	out machine.Output[Rec, Resp, Eff]
	enc encoder
}

// letter is a reply or an effect that waits behind the gate, or may leave.
type letter[Resp, Eff any] struct {
	gate  storage.Offset
	kind  kind
	reply func(Resp, error)
	resp  Resp
	eff   Eff
}

type kind uint8

const (
	nothing kind = iota
	answer       // reply with resp
	lost         // reply with ErrLost
	effect       // carry out eff
)

// New returns a shard that opens at its first use.
func New[Req, Rec, Resp, Eff any](o Options[Req, Rec, Resp, Eff]) *Shard[Req, Rec, Resp, Eff] {
	return &Shard[Req, Rec, Resp, Eff]{o: o, parked: map[machine.Token]func(Resp, error){}}
}

// Do decides on a request. reply is called exactly once: with the response once
// it is durable, or with ErrLost or ErrLoading. It may be called before Do returns.
func (s *Shard[Req, Rec, Resp, Eff]) Do(req Req, reply func(Resp, error)) {
	var none Resp
	s.mu.Lock()
	now := s.now()
	first, err := s.ready(now)
	cold := false
	if err == nil {
		if entity, one := s.m.Touches(req); one {
			cold = !s.m.Has(entity)
			var more []letter[Resp, Eff]
			more, err = s.need(now, entity)
			first = append(first, more...)
		}
	}
	if err != nil {
		s.mu.Unlock()
		s.deliver(first)
		reply(none, err)
		return
	}
	s.token++
	s.m.Handle(now, machine.Input[Req]{Token: s.token, Req: req}, &s.out)
	one, rest := s.finish(s.token, reply)
	if cold && s.m != nil { // who only reads writes nothing, after which onDurable would
		s.m.Evict(s.durable)
	}
	s.mu.Unlock()
	s.deliver(first)
	s.send(one)
	s.deliver(rest)
}

// Fire runs the timers that are due, at most a bounded number of them. Its
// caller calls again when the time told to Timer has come.
func (s *Shard[Req, Rec, Resp, Eff]) Fire() {
	const most = 256
	s.mu.Lock()
	now := s.now()
	out, err := s.ready(now)
	for n := 0; err == nil && s.m != nil && n < most; n++ {
		at, armed := s.m.NextTimer()
		if !armed || at.After(now) {
			break
		}
		if entity, one := s.m.Due(); one {
			var more []letter[Resp, Eff]
			if more, err = s.need(now, entity); err != nil {
				break
			}
			out = append(out, more...)
		}
		s.m.Fire(now, &s.out)
		one, rest := s.finish(0, nil)
		out = append(append(out, one), rest...)
	}
	switch {
	case s.m == nil:
	case err != nil: // what a timer is about cannot be read: not again at once
		s.tell(now.Add(reopenAfter), true)
	default:
		s.tell(s.m.NextTimer())
	}
	s.mu.Unlock()
	s.deliver(out)
}

// now is the time that machines see: records hold milliseconds, and what is
// live must be what a replay gives.
func (s *Shard[Req, Rec, Resp, Eff]) now() time.Time {
	now := s.o.Now()
	if s.o.Passed != nil {
		if by := s.jumps.Step(now, s.o.Passed()); by != 0 {
			if m, ok := s.m.(machine.Shifter); ok {
				m.Shift(by)
			}
		}
	}
	return now.Truncate(time.Millisecond)
}

// Open opens the shard unless it is open.
func (s *Shard[Req, Rec, Resp, Eff]) Open() error {
	s.mu.Lock()
	out, err := s.ready(s.now())
	s.mu.Unlock()
	s.deliver(out)
	return err
}

// Close tells every waiter ErrLost and takes no more requests. What was
// appended stays the log's to make durable.
func (s *Shard[Req, Rec, Resp, Eff]) Close() {
	s.mu.Lock()
	s.closed = true
	out := s.drop()
	s.mu.Unlock()
	s.deliver(out)
}

// Look looks at the machine between two steps, nil: the shard is not open. What is seen
// need not be durable: it is for counting, not for answering. see must not block.
func (s *Shard[Req, Rec, Resp, Eff]) Look(see func(machine.Machine[Req, Rec, Resp, Eff])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	see(s.m)
}

// Adjust is Look for what changes how the machine decides, such as settings.
func (s *Shard[Req, Rec, Resp, Eff]) Adjust(change func(machine.Machine[Req, Rec, Resp, Eff])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.m)
	if s.m != nil {
		s.retime()
	}
}

// Waiting is the number of replies that are decided but not durable, and of requests that are parked.
func (s *Shard[Req, Rec, Resp, Eff]) Waiting() (gated, parked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gated.len(), len(s.parked)
}

// finish applies and appends what a step decided and gives back what may leave
// already: one letter apart, since most steps have one reply.
func (s *Shard[Req, Rec, Resp, Eff]) finish(token machine.Token, reply func(Resp, error)) (one letter[Resp, Eff], rest []letter[Resp, Eff]) {
	defer s.out.Reset()
	if len(s.out.Records) > 0 {
		recs := s.apply()
		if err := s.log.Append(recs); err != nil {
			rest = s.failed(err)
			if reply != nil {
				rest = append(rest, letter[Resp, Eff]{kind: lost, reply: reply})
			}
			return one, rest
		}
		s.end += storage.Offset(len(recs))
	}
	gate := s.end
	open := s.durable >= gate
	answered := reply == nil
	for _, r := range s.out.Replies {
		fn := reply
		if r.Token == token && !answered {
			answered = true
		} else if fn = s.parked[r.Token]; fn == nil {
			panic(fmt.Sprintf("shard %d, offset %d: a second reply to request %d", s.o.ID, gate, r.Token))
		} else {
			delete(s.parked, r.Token)
		}
		l := letter[Resp, Eff]{gate: gate, kind: answer, reply: fn, resp: r.Resp}
		switch {
		case !open:
			s.gated.push(l)
		case one.kind == nothing:
			one = l
		default:
			rest = append(rest, l)
		}
	}
	if !answered {
		s.parked[token] = reply
	}
	for _, e := range s.out.Effects {
		if l := (letter[Resp, Eff]{gate: gate, kind: effect, eff: e}); open {
			rest = append(rest, l)
		} else {
			s.gated.push(l)
		}
	}
	s.retime()
	s.stepped()
	return one, rest
}

// apply makes what a step decided part of the state and encodes it, record by record,
// since each has just been in the processor's cache. The bytes are valid until the next call.
func (s *Shard[Req, Rec, Resp, Eff]) apply() []storage.Record {
	s.enc.reset()
	for i := range s.out.Records {
		r := &s.out.Records[i]
		s.o.Codec.Settle(r)
		encode(&s.enc, s.o.Codec, r)
		s.m.Apply(s.end+storage.Offset(i), r)
	}
	return s.enc.records(s.now())
}

// onDurable is the log's callback.
func (s *Shard[Req, Rec, Resp, Eff]) onDurable(epoch uint64, end storage.Offset, err error) {
	s.mu.Lock()
	if epoch != s.epoch || s.m == nil {
		s.mu.Unlock()
		return
	}
	if err != nil {
		out := s.failed(err)
		s.mu.Unlock()
		s.deliver(out)
		return
	}
	if end < s.durable || end > s.end {
		panic(fmt.Sprintf("shard %d: the log is durable to offset %d, after %d, and ends at %d", s.o.ID, end, s.durable, s.end))
	}
	s.durable = end
	out := s.gated.popTo(end)
	s.m.Evict(end)
	s.mu.Unlock()
	s.deliver(out)
}

// failed drops the machine after a failed append and returns what the waiters are told.
func (s *Shard[Req, Rec, Resp, Eff]) failed(err error) []letter[Resp, Eff] {
	s.o.Failed(fmt.Errorf("shard %d: append: %w", s.o.ID, err))
	return s.drop()
}

// drop forgets the machine and returns what everything that waits is told.
func (s *Shard[Req, Rec, Resp, Eff]) drop() []letter[Resp, Eff] {
	var out []letter[Resp, Eff]
	for _, l := range s.gated.popTo(math.MaxInt64) {
		if l.kind == answer {
			out = append(out, letter[Resp, Eff]{kind: lost, reply: l.reply})
		}
	}
	for _, fn := range s.parked {
		out = append(out, letter[Resp, Eff]{kind: lost, reply: fn})
	}
	clear(s.parked)
	s.m, s.log = nil, nil
	s.epoch++
	s.tell(s.now().Add(reopenAfter), !s.closed)
	s.stepped()
	return out
}

func (s *Shard[Req, Rec, Resp, Eff]) deliver(ls []letter[Resp, Eff]) {
	for _, l := range ls {
		s.send(l)
	}
}

func (s *Shard[Req, Rec, Resp, Eff]) send(l letter[Resp, Eff]) {
	switch l.kind {
	case nothing:
	case answer:
		l.reply(l.resp, nil)
	case lost:
		var none Resp
		l.reply(none, ErrLost)
	case effect:
		s.o.Effect(l.eff)
	}
}

// retime tells Timer when the next Fire is due, if that has changed.
func (s *Shard[Req, Rec, Resp, Eff]) retime() {
	if at, armed := s.m.NextTimer(); armed && !at.Equal(s.due) || !armed && !s.due.IsZero() {
		s.tell(at, armed)
	}
}

func (s *Shard[Req, Rec, Resp, Eff]) stepped() {
	if s.o.Stepped != nil {
		s.o.Stepped(s.m)
	}
}

func (s *Shard[Req, Rec, Resp, Eff]) tell(at time.Time, armed bool) {
	if !armed {
		at = time.Time{}
	}
	s.due = at
	if s.o.Timer != nil {
		s.o.Timer(at)
	}
}

// reopenAfter is how long a shard that failed, or could not read what a timer is
// about, waits for a request before its timers try again.
const reopenAfter = time.Second
