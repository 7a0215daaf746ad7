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
	// Topics were deleted a moment ago: the broker may still show them, and another one may have such a name by
	// the time of a commit.
	doubted bool

	// Of Broker.run alone; down is of mu, too.
	cluster string
	seen    time.Time
	down    error // why the latest look failed; nil: it did not
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
	if t.doubted || !t.trusted() {
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

// Changed says that the broker was just told to change its topics, or to delete some. Find and FindID show
// nothing before the next look has begun after it. A broker shows a change some time after
// it has answered, and whoever deletes a topic, makes it again and commits is not taken to mean the old one: after
// a deletion Find shows nothing for as long as looks are hurried, and who has a name asks for it.
func (t *Topics) Changed(deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	t.doubted = t.doubted || deleted
	select {
	case t.b.changed <- struct{}{}:
	default:
	}
}

// believe ends the doubt about names, unless a change has come meanwhile, after which looks are hurried again.
func (t *Topics) believe() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubted = t.doubted && len(t.b.changed) > 0
}

// trusted REQUIRES t.mu.
func (t *Topics) trusted() bool { return !t.stale && t.changes == t.seenChanges }

// now is the count of changes that a look which begins now will have seen.
func (t *Topics) now() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changes
}
