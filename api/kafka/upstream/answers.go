package upstream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// untold are the topics that an answer could not tell of, by name or by id, and why. Only who
// asked for them is to hear of it: others' questions lie in the same request.
type untold struct {
	names map[string]error
	ids   map[[16]byte]error
}

func (u *untold) add(name *string, id [16]byte, err error) {
	if u.names == nil {
		u.names, u.ids = map[string]error{}, map[[16]byte]error{}
	}
	if err = fmt.Errorf("%w: %w", ErrUnavailable, err); name != nil {
		u.names[*name] = err
	}
	if id != ([16]byte{}) {
		u.ids[id] = err
	}
}

// leftOut adds what an answer does not name at all. That says nothing: not that there is no such topic.
func (u *untold) leftOut(resp *kmsg.MetadataResponse, names []string, ids [][16]byte) {
	told, toldIDs := map[string]bool{}, map[[16]byte]bool{}
	for i := range resp.Topics {
		if name := resp.Topics[i].Topic; name != nil {
			told[*name] = true
		}
		toldIDs[resp.Topics[i].TopicID] = true
	}
	for _, n := range names {
		if !told[n] {
			u.add(&n, [16]byte{}, errLeftOut)
		}
	}
	for _, id := range ids {
		if !toldIDs[id] {
			u.add(nil, id, errLeftOut)
		}
	}
}

var errLeftOut = errors.New("a topic was asked for, and the answer does not name it")

// read makes topics of an answer: those that exist, whatever else is wrong with
// them, the names that do not, and what it could not tell.
func read(resp *kmsg.MetadataResponse, lost *untold) (found []*Topic, absent []string) {
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
			lost.add(rt.Topic, rt.TopicID, fmt.Errorf("asked for a topic: %w", kerr.ErrorForCode(rt.ErrorCode)))
		}
	}
	return found, absent
}

// partitions counts up to the highest: an answer in the middle of a creation may leave some out.
func partitions(t *kmsg.MetadataResponseTopic) (n int32) {
	for i := range t.Partitions {
		n = max(n, t.Partitions[i].Partition+1)
	}
	return n
}

// some takes in an answer about some topics. It returns those whose name has
// another id now, and adds to those that cannot be told of.
func (t *Topics) some(resp *kmsg.MetadataResponse, lost *untold) (replaced map[string][16]byte) {
	found, absent := read(resp, lost)
	replaced = map[string][16]byte{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		if t.show(topic, replaced); t.dying[topic.Name] > 0 {
			lost.add(&topic.Name, topic.ID, fmt.Errorf("topic %q was deleted and its offsets are still there", topic.Name))
		}
	}
	for _, name := range absent {
		t.hide(name)
	}
	return replaced
}

// full takes in an answer about all topics. It returns those whose name has
// another id now, and those that may have been deleted.
func (t *Topics) full(resp *kmsg.MetadataResponse, now time.Time, changes uint64) (replaced map[string][16]byte, suspects []string) {
	found, _ := read(resp, &untold{})
	replaced = map[string][16]byte{}
	present := make(map[string]bool, len(resp.Topics))
	for i := range resp.Topics {
		if resp.Topics[i].Topic != nil {
			present[*resp.Topics[i].Topic] = true // with whatever error
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		t.show(topic, replaced)
	}
	for name := range t.byName {
		if !present[name] {
			t.hide(name)
		}
	}
	t.seen, t.stale, t.down, t.seenChanges = now, false, nil, changes

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
	return *resp.ClusterID != t.cluster
}

// confirmed returns the suspects that the broker says it does not have. The
// others are there after all, or looked at anew.
func (t *Topics) confirmed(resp *kmsg.MetadataResponse, suspects []string) (replaced, gone map[string][16]byte) {
	found, absent := read(resp, &untold{})
	replaced, gone = map[string][16]byte{}, map[string][16]byte{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range found {
		t.show(topic, replaced)
	}
	for _, name := range suspects {
		if a := t.without[name]; slices.Contains(absent, name) {
			delete(t.without, name)
			t.dying[name]++
			gone[name] = [16]byte{}
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
func (t *Topics) failed(now time.Time, why error) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.seen) > t.b.o.MaxAge {
		t.stale = true
	}
	t.seenChanges, t.doubted = t.changes, false // what there is must do, up to MaxAge
	news = t.down == nil || errors.Is(why, ErrOtherCluster) && !errors.Is(t.down, ErrOtherCluster)
	t.down = why
	return news
}

// REQUIRES of show, hide and drop: t.mu is held for writing.

// show shows a topic, unless an older one of its name is not buried yet.
func (t *Topics) show(topic *Topic, replaced map[string][16]byte) {
	other := t.otherID(topic)
	delete(t.without, topic.Name)
	if other {
		replaced[topic.Name] = topic.ID
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
