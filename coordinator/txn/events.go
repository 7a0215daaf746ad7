package txn

import (
	"fmt"
	"slices"
	"time"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

const (
	// eventsOfID bounds the events that are kept of an id.
	eventsOfID = 64
	// defaultEvents bounds those of a shard.
	defaultEvents = 4096
)

// Rule is why a producer came to its epoch, or was refused.
type Rule uint8

const (
	// RuleInit: an InitProducerId gave out the epoch, and fenced that before.
	RuleInit Rule = iota
	// RuleInitAborts: an InitProducerId found a transaction open, which was aborted.
	RuleInitAborts
	// RuleTimeout: the transaction took longer than its timeout.
	RuleTimeout
	// RuleAdmin: an operator aborted the transaction.
	RuleAdmin
	// RuleRotated: the epochs of the producer id were exhausted, and it got another.
	RuleRotated
	// RuleRefused: a request named a producer that is not the current one.
	RuleRefused
	// RuleStale: a request came on an older connection than the one before.
	RuleStale
	// RuleGone: partitions were deleted before their markers were written.
	RuleGone
)

var ruleNames = [...]string{"init", "init-aborts", "timeout", "admin", "rotated", "refused", "stale", "gone"}

func (r Rule) String() string { return ruleNames[r] }

// Event is something that happened to a producer, kept in memory only.
type Event struct {
	At      time.Time
	Rule    Rule
	By      Client // who asked; with RuleTimeout, whose transaction it was
	Request string // with RuleRefused and RuleStale: Kafka's name of it
	// Before is the producer until then, or the one that was refused; After is the one
	// from then on.
	Before, After Producer
	Topics        Topics // with RuleGone
	// Count is how many there were in a row, all refused alike; At is when the last was.
	Count int

	id string
}

// Explanation is all that is known of an id.
type Explanation struct {
	TransactionalID string
	Exists          bool
	Quarantined     bool
	Status          string
	Producer        Producer
	Previous, Next  ProducerID
	Timeout         time.Duration
	Started         time.Time // zero: nothing has begun since it was initialised
	Deadline        time.Time // of an ongoing transaction: when it is aborted; zero: never
	Updated         time.Time
	Version         int16 // the transaction version of the transaction: 0 stands for 1
	Topics          Topics
	// Owner sent the producer's latest control request, at Heard. It is zero after a
	// restart, until there is one.
	Owner Client
	Heard time.Time
	// Events are the latest, in order. What was before a restart is not among them.
	Events []Event
}

// note keeps an event. What is refused again and again counts as one.
func (m *Machine) note(e *entry, ev Event) {
	ev.At, ev.id, ev.Count = m.now, e.id, 1
	if n := len(e.events); n > 0 {
		last := e.events[n-1].Value.(*Event)
		if last.Request != "" && last.Rule == ev.Rule && last.Request == ev.Request && last.By == ev.By && last.Before == ev.Before && last.After == ev.After {
			last.At = m.now
			last.Count++
			return
		}
	}
	e.events = append(e.events, m.events.PushBack(&ev))
	if len(e.events) > eventsOfID {
		m.dropFirst(e)
	}
	for m.events.Len() > m.cfg.Events {
		m.dropFirst(m.dir[m.events.Front().Value.(*Event).id])
	}
}

// dropFirst forgets the oldest event of an id.
func (m *Machine) dropFirst(e *entry) {
	m.events.Remove(e.events[0])
	e.events = slices.Delete(e.events, 0, 1)
}

func (m *Machine) dropEvents(e *entry) {
	for _, el := range e.events {
		m.events.Remove(el)
	}
	e.events = nil
}

// refused notes that a producer was refused that is not the current one.
func (m *Machine) refused(e *entry, t *state.Txn, request string, by Client, p Producer) {
	m.counts.Refused++
	m.note(e, Event{Rule: RuleRefused, By: by, Request: request, Before: p, After: t.Producer})
}

func (m *Machine) explain(e *entry) Response {
	x := Explanation{TransactionalID: e.id, Exists: e.stored, Quarantined: e.quarantined, Owner: e.owner, Heard: e.heard}
	if t := m.hard.Txn(e.id); t != nil {
		x.Status, x.Producer, x.Previous, x.Next = t.Status.String(), t.Producer, t.Previous, t.Next
		x.Timeout, x.Started, x.Updated = t.Timeout, t.Started, t.Updated
		x.Version, x.Topics = t.Version, t.Topics
		if t.Status == state.Ongoing && !t.Unbounded() {
			x.Deadline = m.deadline(e, t)
		}
	}
	for _, el := range e.events {
		x.Events = append(x.Events, *el.Value.(*Event))
	}
	return x
}

// String says it in a line, but for when.
func (ev Event) String() string {
	by := ev.By.words()
	switch ev.Rule {
	case RuleInit:
		if ev.Before == state.NoProducer {
			return fmt.Sprintf("%s initialised the id first: %v", by, ev.After)
		}
		return fmt.Sprintf("%s initialised the id: %v, fencing %v", by, ev.After, ev.Before)
	case RuleInitAborts:
		return fmt.Sprintf("%s initialised the id: the open transaction of %v was aborted under %v", by, ev.Before, ev.After)
	case RuleTimeout:
		return fmt.Sprintf("the transaction of %v, of %s, took too long and was aborted under %v", ev.Before, by, ev.After)
	case RuleAdmin:
		return fmt.Sprintf("%s aborted the transaction of %v under %v", by, ev.Before, ev.After)
	case RuleRotated:
		return fmt.Sprintf("%s used up the epochs of %v and got %v", by, ev.Before, ev.After)
	case RuleRefused:
		return fmt.Sprintf("%s of %s as %v was refused%s: the producer is %v", ev.Request, by, ev.Before, ev.times(), ev.After)
	case RuleStale:
		return fmt.Sprintf("%s of %s as %v was refused%s: it came on connection %d, and a newer one has been used since",
			ev.Request, by, ev.Before, ev.times(), ev.By.Conn)
	}
	return fmt.Sprintf("%d partitions were deleted before %v's markers were written to them", ev.Topics.Len(), ev.Before)
}

// words name a client. After a restart nobody knows who a producer was.
func (c Client) words() string {
	if c.ID == "" && c.Host == "" {
		return "a client not heard of since the restart"
	}
	return fmt.Sprintf("client %q at %s", c.ID, c.Host)
}

func (ev Event) times() string {
	if ev.Count == 1 {
		return ""
	}
	return fmt.Sprintf(" %d times", ev.Count)
}
