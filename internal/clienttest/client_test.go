package clienttest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Clients are told to be quick: their own defaults are for networks.
const (
	retrySoon = 20 * time.Millisecond
	beat      = 50 * time.Millisecond
	session   = 10 * time.Second
	rebalance = 10 * time.Second
	forgotten = 6 * time.Second // the shortest session
)

func soon(int) time.Duration { return retrySoon }

// library is one client library, at one version of the protocol.
type library struct {
	name  string
	join  func(testing.TB, *child, seat) member
	admin func(testing.TB, *child) admin
	// static says whether it can be a static member (KIP-345).
	static bool
}

// seat is the place of a consumer in a group.
type seat struct {
	group, topic string
	client       string // its client id
	instance     string // empty: a dynamic member
	ledger       *ledger
}

// member consumes and commits each record, until it is told to end.
type member interface {
	// leave ends it as its library does: a dynamic member leaves the group, a static one stays in it.
	leave()
	// generation is that of its latest assignment, as far as its library tells; else -1.
	generation() int32
}

// admin is a library's administrative API.
type admin interface {
	describe(group string) (description, error)
	list() ([]string, error)
	commit(group, topic string, offsets map[int32]int64, metadata string) error
	committed(group, topic string, partitions int32) (map[int32]int64, error)
	metadata(group, topic string, partition int32) (string, error)
	deleteOffset(group, topic string, partition int32) error
	deleteGroup(group string) error
}

// remover is an admin that can remove a static member who does not come back.
type remover interface {
	remove(group, instance string) error
}

// errNotYet is a complaint without a story.
var errNotYet = errors.New("not yet")

type description struct {
	state   string
	members []described
}

type described struct {
	id, client, instance string
	partitions           map[string][]int32
	subscribed           []string
	userData             []byte
}

// libraries are all that are tested: each as it is, and those that can speak older
// versions of the protocol also as they spoke then.
func libraries() []library {
	return append(append(franzLibraries(), saramaLibraries()...), kafkaGoLibrary())
}

func franzLibraries() []library {
	return []library{franz("kgo", ""), franz("kgo-3.0", "3.0"), franz("kgo-2.4", "2.4"), franz("kgo-1.0", "1.0")}
}

// today are the libraries at the newest version they speak.
func today() []library {
	return []library{franz("kgo", ""), saramaLibrary("sarama", ""), kafkaGoLibrary()}
}

// each runs a test with each library, all at a time.
func each(t *testing.T, libraries []library, test func(*testing.T, library)) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// sharedOut says whether a group is stable and the clients, and no others, share the
// topic's partitions out evenly.
func (d description) sharedOut(topic string, partitions int32, clients ...string) error {
	count, err := d.owned(topic, partitions)
	if err != nil {
		return err
	}
	if len(d.members) != len(clients) {
		return fmt.Errorf("%d members own partitions: %v", len(d.members), count)
	}
	for _, c := range clients {
		if n := count[c]; n < int(partitions)/len(clients) {
			return fmt.Errorf("%s owns %d partitions: %v", c, n, count)
		}
	}
	return nil
}

// owned tells how many of a topic's partitions each client owns, and what is wrong when not each
// has one owner.
func (d description) owned(topic string, partitions int32) (count map[string]int, err error) {
	if d.state != "Stable" {
		return nil, fmt.Errorf("the group is %s", d.state)
	}
	owner := map[int32]string{}
	count = map[string]int{}
	for _, m := range d.members {
		for _, p := range m.partitions[topic] {
			if other := owner[p]; other != "" {
				return nil, fmt.Errorf("partition %d has two owners, %s and %s", p, other, m.client)
			}
			owner[p] = m.client
			count[m.client]++
		}
	}
	if len(owner) != int(partitions) {
		return nil, fmt.Errorf("%d members own %d partitions: %v", len(d.members), len(owner), count)
	}
	return count, nil
}
