package clienttest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRegularExpression: franz-go resolves it itself, and joins anew when a topic
// appears that it matches. The other libraries have none. Who learns of the topic first may
// get all of it: the members share the partitions of both topics, not of each.
func TestRegularExpression(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.topic("orders-eu", 2, 1)
	k.topic("returns", 2, 1)
	l := newLedger()
	for _, c := range []string{"anna", "ben"} {
		joinFranz(t, k, seat{"g", "^orders-", c, "", l}, kgo.ConsumeRegex(), kgo.MetadataMaxAge(10*beat))
	}
	a := franz("kgo", "").admin(t, k)
	want := []string{"orders-eu"}
	subscribed := func() error {
		d, err := a.describe("g")
		if err != nil {
			return err
		}
		all := map[string]int{}
		for _, t := range want {
			count, err := d.owned(t, 2)
			if err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			for c, n := range count {
				all[c] += n
			}
		}
		if each := len(want); !maps.Equal(all, map[string]int{"anna": each, "ben": each}) {
			return fmt.Errorf("the members own %v partitions", all)
		}
		for _, m := range d.members {
			if !slices.Equal(m.subscribed, want) {
				return fmt.Errorf("%s is subscribed to %v", m.client, m.subscribed)
			}
		}
		return nil
	}
	until(t, "one topic is shared", subscribed)
	k.topic("orders-us", 2, 1)
	want = append(want, "orders-us")
	until(t, "the new topic is shared, too", subscribed)
}

// TestManyTopicsAndMuchUserData: what members say of themselves may be long, and comes
// back whole, also after a kill.
func TestManyTopicsAndMuchUserData(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.topic(topic, partitions, records)
	l := newLedger()
	note := bytes.Repeat([]byte("user data "), 30_000)
	m := joinSarama(t, k, seat{"g", topic, "anna", "", l}, sarama.MaxVersion, func(c *sarama.Config) {
		c.Consumer.Group.Member.UserData = note
	})
	a := newSaramaAdmin(t, k, sarama.MaxVersion)
	whole := func() error {
		d, err := a.describe("g")
		if err == nil {
			err = d.sharedOut(topic, partitions, "anna")
		}
		if err == nil && !bytes.Equal(d.members[0].userData, note) {
			t.Fatalf("%d bytes of user data came back of %d", len(d.members[0].userData), len(note))
		}
		return err
	}
	until(t, "the member is described", whole)
	k.kill()
	k.restart()
	until(t, "the member is described again", whole)
	m.leave()

	many := []string{topic}
	for i := range 300 {
		many = append(many, fmt.Sprintf("a-topic-with-a-rather-long-name-%080d", i))
	}
	joinFranz(t, k, seat{"wide", topic, "ben", "", l}, kgo.ConsumeTopics(many...), kgo.AllowAutoTopicCreation())
	f := franz("kgo", "").admin(t, k)
	until(t, "all topics are assigned", func() error {
		d, err := f.describe("wide")
		if err != nil || len(d.members) == 0 || len(d.members[0].subscribed) == 0 {
			return fmt.Errorf("%+v, %w", d, err)
		}
		if n := len(d.members[0].partitions); n != len(many) {
			return fmt.Errorf("%d topics are assigned of %d", n, len(many))
		}
		return nil
	})
}

// TestKafkaGoReader uses kafka-go as most do: two Readers of a group, which commit
// what they have fetched.
func TestKafkaGoReader(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.topic(topic, partitions, records)
	l := newLedger()
	for _, c := range []string{"anna", "ben"} {
		r := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{k.address}, GroupID: "g", Topic: topic, Dialer: &kafka.Dialer{ClientID: c, Timeout: session},
			StartOffset: kafka.FirstOffset, MaxWait: 10 * beat, ReadBatchTimeout: 10 * beat, ReadLagInterval: -1, HeartbeatInterval: slowBeat,
			SessionTimeout: session, RebalanceTimeout: rebalance, JoinGroupBackoff: retrySoon,
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				m, err := r.FetchMessage(t.Context())
				if err != nil {
					return
				}
				l.consumed(int32(m.Partition), m.Offset)
				if r.CommitMessages(t.Context(), m) == nil {
					l.acknowledged(int32(m.Partition), m.Offset+1)
				}
			}
		}()
		t.Cleanup(func() { r.Close(); <-done })
	}
	a := newKafkaGoAdmin(t, k)
	until(t, "both share the partitions", func() error {
		d, err := a.describe("g")
		if err != nil {
			return err
		}
		return d.sharedOut(topic, partitions, "anna", "ben")
	})
	until(t, "everything is consumed", func() error { return l.allConsumed(allAt(records)) })
	got, err := a.committed("g", topic, partitions)
	for p := range int32(partitions) {
		if got[p] != records {
			t.Errorf("partition %d is at %d of %d, %v", p, got[p], records, err)
		}
	}
}
