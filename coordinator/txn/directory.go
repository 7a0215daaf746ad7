package txn

import (
	"container/list"
	"maps"
	"slices"
	"time"

	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/internal/timerheap"
	"github.com/kcoord/kcoord/storage"
)

// defaultResident bounds what a shard keeps in memory of ids without an open
// transaction: some 300 bytes each.
const defaultResident = 10_000

// entry is what is known of a transactional id: of every id that is stored, in
// memory or not, and of ids in memory that turned out not to be stored, so that
// asking for them again does not go to the disk.
type entry struct {
	id          string
	inMemory    bool
	stored      bool           // has a record
	quarantined bool           // which cannot be read
	last        storage.Offset // of its newest record that was applied since the start

	// What List says, in memory or not.
	status   state.Status
	producer ProducerID
	started  time.Time

	// Soft, and kept while it is not in memory.
	met      bool     // the following is as this machine left it, not as records tell it
	before   Producer // who may ask again for what the current producer was given
	retired  Producer // whose id an Init gave up, in its last epoch: it is fenced, and not unknown
	ownAbort bool     // the transaction that was aborted last was by its own producer
	owner    Client   // who sent the producer's latest control request
	heard    time.Time
	events   []*list.Element // of Machine.events

	jumped          time.Duration // Machine.jumped when its transaction began, and how far in the future that was
	aborts, expires timerheap.Timer[*entry]
	idle            *list.Element // in Machine.idle
}

// entry returns the entry of an id, a new one if there is none.
func (m *Machine) entry(id string) *entry {
	e := m.dir[id]
	if e == nil {
		e = &entry{id: id, last: -1, before: state.NoProducer, retired: state.NoProducer}
		e.aborts.Of, e.expires.Of = e, e
		m.dir[id] = e
	}
	return e
}

// Has is part of machine.Machine.
func (m *Machine) Has(id string) bool {
	e := m.dir[id]
	return e != nil && e.inMemory
}

// Known is part of machine.Machine. Loaded are open transactions, which have a
// deadline or markers to be sent, and what is unreadable, of which the operator is
// told at once.
func (m *Machine) Known(id string, headers []state.Record, _ bool) (load bool) {
	e := m.entry(id)
	for _, h := range headers {
		m.learn(e, &h)
	}
	return e.quarantined || e.stored && e.status.Open()
}

// learn brings an entry in line with the id's latest record. Timers follow from it, too.
func (m *Machine) learn(e *entry, rec *state.Record) {
	e.stored = !rec.Tombstone
	if bad := e.stored && rec.Kind == state.KindUnreadable; bad != e.quarantined {
		e.quarantined = bad
		if bad {
			m.counts.Quarantined++
		} else {
			m.counts.Quarantined--
		}
	}
	t := rec.Txn
	if t == nil {
		e.status, e.producer, e.started = state.Dead, state.NoProducerID, time.Time{}
		m.aborts.timers.Cancel(&e.aborts)
		m.expiry.timers.Cancel(&e.expires)
		if !e.stored {
			m.forgetSoft(e)
		}
		return
	}
	e.status, e.producer, e.started = t.Status, t.Producer.ID, t.Started
	switch {
	case t.Status != state.Ongoing:
		m.aborts.timers.Cancel(&e.aborts)
	case !e.aborts.Set():
		m.begins(e, t)
	}
	if state.Dead.Follows(t.Status) {
		m.expiry.timers.Set(&e.expires, t.Updated.Add(m.cfg.Expiration))
	} else {
		m.expiry.timers.Cancel(&e.expires)
	}
}

// forgetSoft ends what was known of the producers of an id that is no more.
func (m *Machine) forgetSoft(e *entry) {
	e.met, e.before, e.retired, e.ownAbort = false, state.NoProducer, state.NoProducer, false
	e.owner, e.heard = Client{}, time.Time{}
}

// Loaded is part of machine.Machine.
func (m *Machine) Loaded(now time.Time, id string, out *output) {
	m.step(now)
	e := m.entry(id)
	if !e.inMemory {
		e.inMemory = true
		m.resident++
	}
	t := m.hard.Txn(id)
	if t != nil && !e.met {
		e.met, e.before = true, t.Before()
	}
	switch {
	case t == nil:
	case t.Status.Preparing():
		m.carryOn(e, t, out)
	case t.Status == state.Ongoing:
		m.begins(e, t)
	}
	m.settle(e)
}

// settle files an entry after a step: idle and just used, or not to be evicted.
// What its records will make of it is looked at by Evict.
func (m *Machine) settle(e *entry) {
	if !e.inMemory {
		return
	}
	if e.idle == nil {
		e.idle = m.idle.PushBack(e)
	} else {
		m.idle.MoveToBack(e.idle)
	}
}

// Evict is part of machine.Machine. Open transactions and what is in quarantine stay.
func (m *Machine) Evict(durable storage.Offset) {
	for el := m.idle.Front(); el != nil && m.resident > m.cfg.Resident; {
		e := el.Value.(*entry)
		if e.last >= durable {
			return
		}
		next := el.Next()
		m.idle.Remove(el)
		e.idle = nil
		if !e.quarantined && !(e.stored && e.status.Open()) {
			m.forget(e)
		}
		el = next
	}
}

// forget drops an id from memory.
func (m *Machine) forget(e *entry) {
	e.inMemory = false
	m.resident--
	m.hard.Forget(e.id)
	if !e.stored {
		m.dropEvents(e)
		delete(m.dir, e.id)
	}
}

// sorted are the ids of the entries in order.
func (m *Machine) sorted() []string { return slices.Sorted(maps.Keys(m.dir)) }
