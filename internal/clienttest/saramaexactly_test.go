//go:build kafka

package clienttest

import (
	"context"
	"testing"
)

// These are not in the plain run: on a busy machine the worker was seen to stand still for
// 40 s after a kill, for a reason that is not found yet (docs/bugs.md, open).

// TestSaramaExactlyOnce kills kcoord under a sarama client that commits offsets with its
// transactions: with group metadata, and without, which has to be allowed.
func TestSaramaExactlyOnce(t *testing.T) {
	t.Parallel()
	t.Run("metadata", func(t *testing.T) {
		t.Parallel()
		saramaExactlyOnce(t, start(t), true)
	})
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		saramaExactlyOnce(t, start(t, "transaction.offset.commit.legacy=allow"), false)
	})
}

func saramaExactlyOnce(t *testing.T, k *child, metadata bool) {
	g := newGroup(t, saramaLibrary("sarama", ""), k)
	k.topic(invoices, 3, 0)
	w := &saramaWorker{child: k, group: g.id, metadata: metadata}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	for range 3 {
		before := w.committed.Load()
		until(t, "the worker goes on", func() error {
			if n := w.committed.Load() - before; n == 0 {
				return errNotYet
			}
			return nil
		})
		k.kill()
		k.restart()
		if err := k.produce(t.Context(), k.client(), topic, partitions, 5); err != nil {
			t.Error(err)
		}
	}
	g.committedTo(g.ends())
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	k.exactly(g.ends())
}
