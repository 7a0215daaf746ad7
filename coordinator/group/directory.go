package group

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/storage"
)

// defaultResidentOffsets bounds what a shard keeps in memory of groups that
// nobody is in: some 250 bytes an offset. Names and metadata, of which a client may send as much
// as it likes, count as the offsets that they take the room of.
const (
	defaultResidentOffsets = 100_000
	bytesAnOffset          = 250
)

// entry is what is known of a group id: of every group that is stored, in memory
// or not, and of ids in memory that turned out to have no group, so that asking
// for them again does not go to the disk.
type entry struct {
	id       string
	inMemory bool // hard and live are what is stored; live is nil: no classic group
	live     *liveGroup
	stored   bool           // has records
	last     storage.Offset // of its newest record that was applied since the start
	weight   int            // in memory: see weigh

	// What List says while it is not in memory.
	kind         groupKind
	protocolType string

	quarantined bool
	pending     bool // in memory, and has pending offsets: it stays there for their marker

	checkAt time.Time // when something of it may expire
	place   int       // in the sweep; 0: nothing will

	prev, next *entry // in the idle list
	idle       bool
}

// groupKind is which protocol a group's records are of.
type groupKind uint8

const (
	kindClassic groupKind = iota
	kindConsumer
	kindShare
	kindStreams
)

var kindNames = [...]string{"classic", "consumer", "share", "streams"}

// entry returns the entry of an id, a new one if there is none.
func (m *Machine) entry(id string) *entry {
	e := m.dir[id]
	if e == nil {
		e = &entry{id: id, last: -1}
		m.dir[id] = e
	}
	return e
}

// Has is part of machine.Machine.
func (m *Machine) Has(id string) bool {
	e := m.dir[id]
	return e != nil && e.inMemory
}

// Known is part of machine.Machine. Of what is unreadable the operator is told
// at once, so it is loaded.
func (m *Machine) Known(id string, headers []state.Record, pending bool) (load bool) {
	e := m.entry(id)
	e.stored = true
	load = pending
	for _, h := range headers {
		switch {
		case h.Classic != nil:
			e.protocolType = h.Classic.ProtocolType
			load = load || len(h.Classic.Members) > 0
		case h.Kind == state.KindOther:
			e.learnKind(h.Key)
		case h.Kind == state.KindUnreadable:
			load = true
		}
	}
	m.checkSoon(e)
	return load
}

// learnKind takes from the key of a record of another type what kind of group it is.
func (e *entry) learnKind(key []byte) {
	if len(key) < 2 {
		return
	}
	switch t := groupmeta.Type(binary.BigEndian.Uint16(key)); {
	case t >= groupmeta.TypeConsumerGroupMetadata && t <= groupmeta.TypeConsumerGroupCurrentMemberAssignment,
		t == groupmeta.TypeConsumerGroupRegularExpression:
		e.kind = kindConsumer
	case t > groupmeta.TypeConsumerGroupCurrentMemberAssignment && t <= groupmeta.TypeShareGroupStatePartitionMetadata:
		e.kind = kindShare
	case t >= groupmeta.TypeStreamsGroupMetadata && t <= groupmeta.TypeStreamsGroupTopology:
		e.kind = kindStreams
	default:
		return
	}
	e.protocolType = kindNames[e.kind]
}

// weigh is an entry's weight in memory: one for itself, one for each offset, and more for long texts.
func (e *entry) weigh(g *state.Group) int {
	text, offsets := len(e.id), 0
	if g != nil {
		text, offsets = text+g.Text(), g.Offsets()+g.Pending()
	}
	return 1 + offsets + text/bytesAnOffset
}

// measure brings an entry up to date after a record was applied.
func (m *Machine) measure(e *entry, g *state.Group, kind state.Kind) {
	weight, bad, pending := e.weigh(g), false, false
	if g != nil {
		bad, pending = g.Quarantined(), g.Pending() > 0
	}
	e.stored = g != nil
	m.resident += weight - e.weight
	e.weight = weight
	if kind == state.KindOther {
		e.kind, e.protocolType = kindClassic, ""
		if g != nil {
			g.Others(func(r state.Record) { e.learnKind(r.Key) })
		}
	}
	if bad != e.quarantined {
		e.quarantined = bad
		if bad {
			m.counts.Quarantined++
			m.idle.remove(e)
		} else {
			m.counts.Quarantined--
		}
		m.checkSoon(e)
	}
	if pending != e.pending {
		e.pending = pending
		m.settle(e)
	}
}

// Loaded is part of machine.Machine.
func (m *Machine) Loaded(now time.Time, id string, out *output) {
	m.step(now)
	e := m.entry(id)
	e.inMemory = true
	if e.weight == 0 {
		e.weight = e.weigh(nil)
		m.resident += e.weight
	}
	if e.stored && e.place == 0 {
		m.checkSoon(e)
	}
	m.revive(m.now, e, out)
	m.settle(e)
}

// revive brings soft state in line with the hard: it makes a group live that has
// none, and ends what is live of a group that got into quarantine.
func (m *Machine) revive(now time.Time, e *entry, out *output) {
	if e.quarantined || e.kind != kindClassic {
		m.suspend(e, out)
		return
	}
	if e.live != nil || !e.stored {
		return
	}
	c := m.hard.Group(e.id).Classic()
	if c == nil {
		e.live = newLiveGroup(e, now)
		return
	}
	e.live = loadedGroup(e, c)
	for _, mb := range e.live.order {
		m.beat(now, e, mb)
	}
	if len(e.live.order) > m.cfg.MaxSize {
		m.rebalance(now, e, out) // group.max.size was lowered
	}
}

// settle files an entry after a step: idle and just used, or not to be evicted.
func (m *Machine) settle(e *entry) {
	m.idle.remove(e)
	if e.inMemory && !e.quarantined && !e.pending && (e.live == nil || e.live.idle()) {
		m.idle.push(e)
	}
}

// Evict is part of machine.Machine. What was used last stays, however big: else
// it would be loaded for each request.
func (m *Machine) Evict(durable storage.Offset) {
	for m.resident > m.cfg.ResidentOffsets {
		e := m.idle.first
		if e == m.idle.last || e.last >= durable { // or there is none
			return
		}
		m.forget(e)
	}
}

// forget drops a group from memory.
func (m *Machine) forget(e *entry) {
	m.idle.remove(e)
	if e.live != nil {
		e.protocolType = e.live.protocolType
	}
	e.live, e.inMemory = nil, false
	m.hard.Forget(e.id)
	m.resident -= e.weight
	e.weight = 0
	if !e.stored {
		m.sweep.Remove(e)
		delete(m.dir, e.id)
	}
}

// sorted are the ids of the entries in order.
func (m *Machine) sorted() []string { return slices.Sorted(maps.Keys(m.dir)) }

// idleList is a list of entries, the longest unused first.
type idleList struct{ first, last *entry }

func (l *idleList) push(e *entry) {
	e.idle, e.prev, e.next = true, l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
}

func (l *idleList) remove(e *entry) {
	if !e.idle {
		return
	}
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.idle, e.prev, e.next = false, nil, nil
}
