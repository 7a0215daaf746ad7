package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// past is after the first record of partition 0.
var past = map[string]map[int32]kgo.EpochOffset{"in": {0: {Epoch: -1, Offset: 1}}}

// until asks again and again, for as long as only a failure takes.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatalf("%s: it never happened", what)
		}
	}
}

// poll lets a consumer take part in its group, and is false until it is in a generation
// after another one.
func poll(t *testing.T, c *kgo.Client, after int32) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c.PollFetches(ctx)
	m, err := MetadataOf(c)
	return err == nil && m.Generation() > after
}

// inTransaction writes a record, sends offsets and ends as that went.
func inTransaction(t *testing.T, k *kcoord, producer *kgo.Client, by ConsumerGroupMetadata) error {
	t.Helper()
	must(t, producer.BeginTransaction())
	must(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "out"}).FirstErr())
	before := k.committed()
	err := k.txns.SendOffsets(t.Context(), producer, by, past)
	if now := k.committed(); now != before {
		t.Errorf("the offset of an open transaction is visible: %d, before %d", now, before)
	}
	must(t, producer.EndTransaction(t.Context(), kgo.TransactionEndTry(err == nil)))
	return err
}

func TestAStaleGenerationIsRefusedAndNothingIsVisible(t *testing.T) {
	k := newKcoord(t)
	producer := k.client(kgo.TransactionalID("worker"))
	first := k.consumer(kgo.InstanceID("first"))
	until(t, "the first consumer is a member", func() bool { return poll(t, first, 0) })
	stale, err := MetadataOf(first)
	must(t, err)
	if id, static := stale.InstanceID(); stale.Group() != "g" || stale.MemberID() == "" || id != "first" || !static {
		t.Errorf("%+v", stale)
	}

	second := k.consumer()
	until(t, "there is another generation", func() bool {
		return poll(t, first, stale.Generation()) && poll(t, second, stale.Generation())
	})
	if err := inTransaction(t, k, producer, stale); !errors.Is(err, kerr.IllegalGeneration) {
		t.Errorf("of generation %d: %v", stale.Generation(), err)
	}
	if at := k.committed(); at != -1 {
		t.Errorf("a stale member committed %d", at)
	}

	now, err := MetadataOf(first)
	must(t, err)
	must(t, inTransaction(t, k, producer, now))
	until(t, "the offset counts", func() bool { return k.committed() == 1 })
	if _, static := mustBe(t, second).InstanceID(); static {
		t.Error("a dynamic member has an instance id")
	}
}

func mustBe(t *testing.T, c *kgo.Client) ConsumerGroupMetadata {
	t.Helper()
	m, err := MetadataOf(c)
	must(t, err)
	return m
}

// forged wraps a member to be of another generation.
type forged struct{ ConsumerGroupMetadata }

func (forged) Generation() int32 { return 7 }

func TestOnlyMembersHaveMetadata(t *testing.T) {
	k := newKcoord(t)
	if _, err := MetadataOf(k.client()); !errors.Is(err, ErrNoMember) {
		t.Errorf("in no group: %v", err)
	}
	producer := k.client(kgo.TransactionalID("worker"))
	for _, nobody := range []ConsumerGroupMetadata{nil, (*member)(nil), forged{&member{group: "g", id: "m", generation: 1}}} {
		if err := k.txns.SendOffsets(t.Context(), producer, nobody, past); !errors.Is(err, ErrNoMember) {
			t.Errorf("%T: %v", nobody, err)
		}
	}
	if err := k.txns.SendOffsets(t.Context(), k.client(), &member{group: "g", id: "m", generation: 1}, past); !errors.Is(err, ErrNotTransactional) {
		t.Errorf("a plain producer: %v", err)
	}
}
