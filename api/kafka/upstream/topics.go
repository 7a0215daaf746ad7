package upstream

import (
	"sync"
	"time"
)

// Topic is one of the broker's topics.
type Topic struct {
	Name       string
	ID         [16]byte // zero where the broker has no ids
	Partitions int32
}

// Has says whether the topic has that partition.
func (t *Topic) Has(partition int32) bool { return partition >= 0 && partition < t.Partitions }

// Looks in a row that must leave a topic out before its name is asked for.
const (
	looksWithout       = 2
	looksWithoutATopic = 5 // where the answers name no topic at all
)

// Topics is a view of the broker's topics. Find and FindID never wait; Ask asks
// the broker for what they did not find.
type Topics struct {
	b *Broker

	mu     sync.RWMutex
	byName map[string]*Topic
	byID   map[[16]byte]*Topic
	stale  bool // older than MaxAge, or there was never an answer
	// How often Changed was called, and how often before the latest look began.
	changes, seenChanges uint64

	// Of Broker.run alone; down is of mu, too.
	cluster string
	seen    time.Time
	down    bool
	without map[string]*absence

	dying map[string]int // names whose deletion is being told; of mu
}

// absence is a topic that full answers left out.
type absence struct {
	topic *Topic
	looks int
}

func (t *Topics) init(b *Broker) {
	t.b, t.stale = b, true
	t.byName, t.byID, t.without, t.dying = map[string]*Topic{}, map[[16]byte]*Topic{}, map[string]*absence{}, map[string]int{}
}

// Find returns the topic of a name; nil: ask for it.
func (t *Topics) Find(name []byte) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.trusted() {
		return nil
	}
	return t.byName[string(name)]
}

// FindID returns the topic with an id; nil: ask for it.
func (t *Topics) FindID(id [16]byte) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.trusted() {
		return nil
	}
	return t.byID[id]
}

// Asked returns a topic that Ask was asked for and gave no error for; nil: it
// does not exist.
func (t *Topics) Asked(name string) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// AskedID is Asked by id.
func (t *Topics) AskedID(id [16]byte) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byID[id]
}

// Changed says that the broker was just told to change its topics. Find shows
// nothing before the next look has begun after it, so that whoever deletes a topic,
// makes it again and commits is not taken to mean the old one.
func (t *Topics) Changed() {
	t.mu.Lock()
	t.changes++
	t.mu.Unlock()
	select {
	case t.b.changed <- struct{}{}:
	default:
	}
}

// trusted REQUIRES t.mu.
func (t *Topics) trusted() bool { return !t.stale && t.changes == t.seenChanges }

// now is the count of changes that a look which begins now will have seen.
func (t *Topics) now() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changes
}
