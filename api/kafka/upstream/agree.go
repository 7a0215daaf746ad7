package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A gateway may ask one broker now and another one later, and brokers lag: what
// the second says may be older than what the first said. To an older answer, a
// topic that was created since looks deleted, and one that was created anew looks
// replaced, and either would delete offsets. So in a gateway these take that all
// live brokers say the same.

var errBehind = errors.New("upstream: the broker's topics are not those of the cluster's other brokers; it may be behind")

// elsewhere says whether the last full look was at another broker.
func (b *Broker) elsewhere() bool {
	at := b.current.Load()
	return b.gateway() && b.looked != "" && at != nil && *at != b.looked
}

// doubt checks a full answer of a broker that did not give the one before:
// topics that have another id now must have it everywhere.
func (b *Broker) doubt(ctx context.Context, resp *kmsg.MetadataResponse) error {
	if !b.elsewhere() {
		return nil
	}
	changed := b.topics.changed(resp)
	if len(changed) == 0 {
		return nil
	}
	return b.everywhere(ctx, changed, func(other *kmsg.MetadataResponse) error {
		if b.topics.changedNames(other, changed) {
			return nil
		}
		return errBehind
	})
}

// everywhere asks all live brokers for topics. It fails when one does not answer.
func (b *Broker) everywhere(ctx context.Context, names []string, check func(*kmsg.MetadataResponse) error) error {
	known := b.nodes.Load()
	for _, id := range known.live {
		n := known.all[id]
		l := &link{timeout: b.o.Timeout, told: func(*kmsg.ApiVersionsResponse) {}}
		l.dial = func(ctx context.Context) (net.Conn, error) { return b.dialTo(ctx, n.Addr()) }
		resp, err := l.metadata(ctx, names, nil)
		l.close()
		if err == nil {
			err = check(resp)
		}
		if err != nil {
			return fmt.Errorf("upstream: node %d: %w", id, err)
		}
	}
	return nil
}

// absentEverywhere returns those of the names that no live broker has; none when
// one could not be asked.
func (b *Broker) absentEverywhere(ctx context.Context, names []string) []string {
	left := slices.Clone(names)
	err := b.everywhere(ctx, names, func(resp *kmsg.MetadataResponse) error {
		left = slices.DeleteFunc(left, func(name string) bool {
			return !slices.ContainsFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool {
				return t.Topic != nil && *t.Topic == name && t.ErrorCode == kerr.UnknownTopicOrPartition.Code
			})
		})
		return nil
	})
	if err != nil {
		return nil
	}
	return left
}

// changed returns the topics that are known by another id than an answer has.
func (t *Topics) changed(resp *kmsg.MetadataResponse) (names []string) {
	found, _ := read(resp, &untold{})
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, topic := range found {
		if t.otherID(topic) {
			names = append(names, topic.Name)
		}
	}
	return names
}

// changedNames says whether an answer has all of the names with other ids than known.
func (t *Topics) changedNames(resp *kmsg.MetadataResponse, names []string) bool {
	changed := t.changed(resp)
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(changed, n) })
}

// otherID says whether a topic is known by another id. REQUIRES mu.
func (t *Topics) otherID(topic *Topic) bool {
	old := t.byName[topic.Name]
	if a := t.without[topic.Name]; old == nil && a != nil {
		old = a.topic
	}
	return old != nil && old.ID != topic.ID && old.ID != ([16]byte{}) && topic.ID != ([16]byte{})
}
