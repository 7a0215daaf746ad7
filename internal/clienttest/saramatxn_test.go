package clienttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
)

// TestSaramaIsDenied: by default such a commit is refused, for good and not for the
// client's next attempt, and no offset is committed.
func TestSaramaIsDenied(t *testing.T) {
	t.Parallel()
	k := start(t)
	g := newGroup(t, saramaLibrary("sarama", ""), k)
	k.topic(invoices, 3, 0)
	w := &saramaWorker{child: k, group: g.id, once: true}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.run(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("sarama committed as nobody: %v", err)
	} else {
		t.Logf("sarama says: %v", err)
	}
	if at, err := g.admin.committed(g.id, topic, partitions); err != nil || len(at) > 0 {
		t.Errorf("committed is %v, %v", at, err)
	}
}

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

// TestTurnsEnd: a worker whose session ended while it waited for the turn once kept it, and
// stood still in all sessions after. Either case of the select may come first.
func TestTurnsEnd(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w := &saramaWorker{turn: make(chan struct{}, 1)}
	for range 64 {
		if err := w.take(nil, overSession{ctx: over}); err != nil || len(w.turn) > 0 {
			t.Fatalf("after a session that is over: %v, %d turns held", err, len(w.turn))
		}
	}
}

type overSession struct {
	sarama.ConsumerGroupSession
	ctx context.Context
}

func (s overSession) Context() context.Context { return s.ctx }

// saramaWorker is a consume-transform-produce loop, and the handler of its group.
type saramaWorker struct {
	child     *child
	group     string
	metadata  bool // of its membership
	once      bool // end at the first error
	committed atomic.Int64

	producer sarama.SyncProducer
	turn     chan struct{} // held by the partition whose transaction is open
	broken   bool          // the producer has failed; who has the turn looks and says
	failed   chan error
}

// run takes a new producer whenever a transaction could not be committed, and consumes
// again from what is committed: the new producer has ended what the old one left open.
func (w *saramaWorker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := w.live(ctx)
		if w.once && ctx.Err() == nil {
			return err
		}
		pause(ctx)
	}
	return nil
}

func (w *saramaWorker) live(ctx context.Context) error {
	c := saramaConfig(sarama.MaxVersion, "worker")
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent, c.Producer.RequiredAcks, c.Producer.Return.Successes = true, sarama.WaitForAll, true
	c.Producer.Retry.Max, c.Producer.Retry.Backoff = 100, retrySoon
	c.Producer.Transaction.ID, c.Producer.Transaction.Timeout = w.group, session
	c.Producer.Transaction.Retry.Backoff = retrySoon
	// Each has connections of its own: a fetch that waits would keep the producer waiting.
	var err error
	if w.producer, err = sarama.NewSyncProducer([]string{w.child.address}, c); err != nil {
		return err
	}
	defer w.producer.Close()
	consumer, err := sarama.NewConsumerGroup([]string{w.child.address}, w.group, c)
	if err != nil {
		return err
	}
	defer consumer.Close()
	w.turn, w.broken, w.failed = make(chan struct{}, 1), false, make(chan error, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-w.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		if err := consumer.Consume(ctx, []string{topic}, w); err != nil && !pause(ctx) {
			break
		}
	}
	return context.Cause(ctx)
}

func (*saramaWorker) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaWorker) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim makes each record a transaction.
func (w *saramaWorker) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case r, open := <-c.Messages():
			if !open {
				return nil
			}
			if err := w.take(r, s); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// take waits for the turn and gives it back however it ends, since a producer outlives
// sessions. What is read after the session, or when the producer is done, is read again.
func (w *saramaWorker) take(r *sarama.ConsumerMessage, s sarama.ConsumerGroupSession) error {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-s.Context().Done():
		return nil
	}
	if w.broken || s.Context().Err() != nil {
		return nil
	}
	err := w.transact(r, s)
	if err != nil {
		w.broken = true
		w.failed <- err
	}
	return err
}

func (w *saramaWorker) transact(r *sarama.ConsumerMessage, s sarama.ConsumerGroupSession) error {
	if err := w.producer.BeginTxn(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	_, _, err := w.producer.SendMessage(&sarama.ProducerMessage{Topic: invoices, Value: sarama.StringEncoder(invoice(r.Partition, r.Offset))})
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	member := sarama.NewConsumerGroupMetadata(w.group)
	if w.metadata {
		member = sarama.NewConsumerGroupMetadataFromSession(s, w.group, nil)
	}
	if err := w.producer.AddMessageToTxnWithGroupMetadata(r, member, nil); err != nil {
		return fmt.Errorf("add: %w", err)
	}
	if err := w.producer.CommitTxn(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.committed.Add(1)
	return nil
}
