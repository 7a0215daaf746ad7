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

// saramaWorker is a consume-transform-produce loop, and the handler of its group.
type saramaWorker struct {
	child     *child
	group     string
	metadata  bool // of its membership
	once      bool // end at the first error
	committed atomic.Int64

	producer sarama.SyncProducer
	turn     chan struct{} // held by the partition whose transaction is open
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
	w.turn, w.failed = make(chan struct{}, 1), make(chan error, 1)
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
			select {
			case w.turn <- struct{}{}:
			case <-s.Context().Done():
				return nil
			}
			select {
			case <-s.Context().Done(): // another's turn may have ended with the session
				return nil
			default:
			}
			if err := w.transact(r, s); err != nil {
				select { // the turn is not given back: this producer is done
				case w.failed <- err:
				default:
				}
				return err
			}
			<-w.turn
		case <-s.Context().Done():
			return nil
		}
	}
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
