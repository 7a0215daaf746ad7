package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
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

	// Of Broker.run alone.
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

// ask is one caller's questions.
type ask struct {
	names []string
	ids   [][16]byte
	done  chan error
}

// Ask asks the broker for topics. When it returns without an error, Asked and
// AskedID show what there was when the broker answered, which was after Ask was
// called. An error wraps ErrUnavailable.
func (t *Topics) Ask(ctx context.Context, names []string, ids [][16]byte) error {
	a := &ask{names: names, ids: ids, done: make(chan error, 1)}
	select {
	case t.b.asks <- a:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-t.b.done:
		return ErrUnavailable
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-t.b.done:
		return ErrUnavailable
	}
}

// Absent returns those of the names that the broker says it does not have.
func (t *Topics) Absent(ctx context.Context, names []string) ([]string, error) {
	if err := t.Ask(ctx, names, nil); err != nil {
		return nil, err
	}
	var absent []string
	for _, n := range names {
		if t.Asked(n) == nil {
			absent = append(absent, n)
		}
	}
	return absent, nil
}

// answer puts the questions of several callers in one request.
func (b *Broker) answer(ctx context.Context, l *link, asks []*ask) {
	names, ids := map[string]bool{}, map[[16]byte]bool{}
	for _, a := range asks {
		for _, n := range a.names {
			names[n] = true
		}
		for _, id := range a.ids {
			if id != ([16]byte{}) { // no topic has it
				ids[id] = true
			}
		}
	}
	var err error
	if len(names)+len(ids) > 0 {
		err = b.put(ctx, l, slices.Sorted(maps.Keys(names)), slices.Collect(maps.Keys(ids)))
	}
	for _, a := range asks {
		a.done <- err
	}
}

// put asks for topics and shows the answer. Versions of Metadata before 12 cannot
// ask by id alone; what such a broker's topics have for ids, a full look shows.
func (b *Broker) put(ctx context.Context, l *link, names []string, ids [][16]byte) error {
	if !b.topics.isTrusted() { // then nothing is shown, and nothing found would look like nothing there
		if err := b.look(ctx, l); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	if err := l.open(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if l.metadataVersion < 12 {
		ids = nil
	}
	if len(names)+len(ids) == 0 {
		return nil
	}
	resp, err := l.metadata(ctx, names, ids)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if b.topics.otherCluster(resp) {
		return fmt.Errorf("%w: %w", ErrUnavailable, errOtherCluster)
	}
	replaced, err := b.topics.some(resp)
	b.bury(ctx, replaced, "topics were deleted and created again")
	return err
}

// read makes topics of an answer: those that exist, whatever else is wrong with
// them, and the names that do not. err: some it could not tell.
func read(resp *kmsg.MetadataResponse) (found []*Topic, absent []string, err error) {
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		switch rt.ErrorCode {
		case kerr.UnknownTopicOrPartition.Code, kerr.InvalidTopicException.Code:
			if rt.Topic != nil {
				absent = append(absent, *rt.Topic)
			}
		case kerr.UnknownTopicID.Code:
		case 0, kerr.LeaderNotAvailable.Code:
			if rt.Topic != nil {
				found = append(found, &Topic{Name: *rt.Topic, ID: rt.TopicID, Partitions: partitions(rt)})
			}
		default:
			err = fmt.Errorf("%w: Metadata of a topic: %w", ErrUnavailable, kerr.ErrorForCode(rt.ErrorCode))
		}
	}
	return found, absent, err
}

// partitions counts up to the highest: an answer in the middle of a creation may leave some out.
func partitions(t *kmsg.MetadataResponseTopic) (n int32) {
	for i := range t.Partitions {
		n = max(n, t.Partitions[i].Partition+1)
	}
	return n
}

// some takes in an answer about some topics. It returns those whose name has
// another id now.
func (t *Topics) some(resp *kmsg.MetadataResponse) (replaced []string, err error) {
	found, absent, err := read(resp)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		if t.show(topic, &replaced); t.dying[topic.Name] > 0 {
			err = fmt.Errorf("%w: topic %q was deleted and its offsets are still there", ErrUnavailable, topic.Name)
		}
	}
	for _, name := range absent {
		t.hide(name)
	}
	return replaced, err
}

// full takes in an answer about all topics. It returns those whose name has
// another id now, and those that may have been deleted.
func (t *Topics) full(resp *kmsg.MetadataResponse, now time.Time, changes uint64) (replaced, suspects []string) {
	found, _, _ := read(resp)
	present := make(map[string]bool, len(resp.Topics))
	for i := range resp.Topics {
		if resp.Topics[i].Topic != nil {
			present[*resp.Topics[i].Topic] = true // with whatever error
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		t.show(topic, &replaced)
	}
	for name := range t.byName {
		if !present[name] {
			t.hide(name)
		}
	}
	t.seen, t.stale, t.down, t.seenChanges = now, false, false, changes

	need := looksWithout
	if len(present) == 0 {
		need = looksWithoutATopic
	}
	for name, a := range t.without {
		if present[name] {
			delete(t.without, name)
		} else if a.looks++; a.looks >= need {
			suspects = append(suspects, name)
		}
	}
	slices.Sort(suspects)
	return replaced, suspects
}

// otherCluster says whether an answer comes from another cluster than those
// before. Its topics say nothing about the topics of the first.
func (t *Topics) otherCluster(resp *kmsg.MetadataResponse) bool {
	if resp.ClusterID == nil {
		return false
	}
	if t.cluster == "" {
		t.cluster = *resp.ClusterID
	}
	if *resp.ClusterID == t.cluster {
		return false
	}
	t.b.o.Log.Error().Str("broker", t.b.name()).Str("cluster", *resp.ClusterID).Str("expected", t.cluster).
		Msg("the broker behind belongs to another cluster than before; its topics are not believed: restart kcoord if that is right")
	return true
}

// confirmed returns the suspects that the broker says it does not have. The
// others are there after all, or looked at anew.
func (t *Topics) confirmed(resp *kmsg.MetadataResponse, suspects []string) (replaced, gone []string) {
	found, absent, _ := read(resp)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		t.show(topic, &replaced)
	}
	for _, name := range suspects {
		if a := t.without[name]; slices.Contains(absent, name) {
			delete(t.without, name)
			t.dying[name]++
			gone = append(gone, name)
		} else if a != nil {
			a.looks = 0
		}
	}
	return replaced, gone
}

// buried says that the deletion of topics was heard: new ones of their names may be shown.
func (t *Topics) buried(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range names {
		if t.dying[n]--; t.dying[n] == 0 {
			delete(t.dying, n)
		}
	}
}

func (t *Topics) isTrusted() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.trusted()
}

// failed takes in that there was no answer; it says whether that is new.
func (t *Topics) failed(now time.Time) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.seen) > t.b.o.MaxAge {
		t.stale = true
	}
	t.seenChanges = t.changes // what there is must do, up to MaxAge
	first, t.down = !t.down, true
	return first
}

// REQUIRES of show, hide and drop: t.mu is held for writing.

// show shows a topic, unless an older one of its name is not buried yet.
func (t *Topics) show(topic *Topic, replaced *[]string) {
	old := t.byName[topic.Name]
	if a := t.without[topic.Name]; old == nil && a != nil {
		old = a.topic
	}
	delete(t.without, topic.Name)
	if old != nil && old.ID != topic.ID && old.ID != ([16]byte{}) && topic.ID != ([16]byte{}) {
		*replaced = append(*replaced, topic.Name)
		t.dying[topic.Name]++
	}
	if t.dying[topic.Name] > 0 {
		t.drop(topic.Name)
		return
	}
	if now := t.byName[topic.Name]; now != nil {
		if *now == *topic {
			return // keep the one that others hold already
		}
		topic.Name = now.Name
		delete(t.byID, now.ID)
	}
	t.byName[topic.Name] = topic
	if topic.ID != ([16]byte{}) {
		t.byID[topic.ID] = topic
	}
}

// hide takes a topic out of the view and makes it one that may have been deleted.
func (t *Topics) hide(name string) {
	if topic := t.drop(name); topic != nil {
		t.without[name] = &absence{topic: topic}
	}
}

func (t *Topics) drop(name string) *Topic {
	topic := t.byName[name]
	if topic != nil {
		delete(t.byName, name)
		delete(t.byID, topic.ID)
	}
	return topic
}
