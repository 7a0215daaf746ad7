package clienttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What is read from one topic and written to the other, exactly once.
const (
	eosIn, eosOut = "in", "out"
	eosGroup      = "exactly-once"
)

// TestExactlyOnce has workers consume, write and commit in transactions while kcoord,
// and with it the data plane, is killed again and again: in the end, whoever reads
// committed records finds every one of them once.
func TestExactlyOnce(t *testing.T) {
	for _, version := range []string{"2", "1"} {
		t.Run("transaction.version="+version, func(t *testing.T) {
			t.Parallel()
			kills, records := 6, 250
			if testing.Short() {
				kills, records = 2, 60
			}
			k := start(t, "transaction.version="+version, "transaction.abort.timed.out.transaction.cleanup.interval.ms=200")
			k.eosTopics(records)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for _, w := range []string{"anna", "ben"} {
				all.Go(func() { (&eosWorker{t: t, k: k, id: w}).work(ctx) })
			}
			for i := range kills {
				until(t, "the work goes on", func() error {
					if done := k.eosDone(t.Context()); done < (i+1)*records*partitions/(kills+1) {
						return fmt.Errorf("%d records", done)
					}
					return nil
				})
				k.kill()
				k.restart()
			}
			until(t, "all is worked off", func() error {
				if done := k.eosDone(t.Context()); done < records*partitions {
					return fmt.Errorf("%d records", done)
				}
				return nil
			})
			stop()
			all.Wait()
			k.eosOnce(records)
		})
	}
}

func (k *child) eosTopics(records int) {
	k.t.Helper()
	c := k.client()
	if _, err := kadm.NewClient(c).CreateTopics(k.t.Context(), partitions, 1, nil, eosIn, eosOut); err != nil {
		k.t.Fatal(err)
	}
	for i := range records {
		batch := make([]*kgo.Record, partitions)
		for p := range batch {
			batch[p] = &kgo.Record{Topic: eosIn, Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d", p, i)}
		}
		if err := c.ProduceSync(k.t.Context(), batch...).FirstErr(); err != nil {
			k.t.Fatal(err)
		}
	}
}

// eosDone is how many records are worked off, as far as is committed.
func (k *child) eosDone(ctx context.Context) (done int) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	os, err := kadm.NewClient(k.client()).FetchOffsets(ctx, eosGroup)
	if err != nil {
		return 0
	}
	os.Each(func(o kadm.OffsetResponse) { done += int(max(o.At, 0)) })
	return done
}

// eosOnce reads what is committed in the topic that is written to.
func (k *child) eosOnce(records int) {
	k.t.Helper()
	c := k.client(kgo.ConsumeTopics(eosOut), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	times := map[string]int{}
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	for len(times) < records*partitions && ctx.Err() == nil {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { times[string(r.Value)]++ })
	}
	// What is aborted, or open, is not there; nor is anything a second time.
	ends, err := kadm.NewClient(c).ListCommittedOffsets(k.t.Context(), eosOut)
	if err != nil {
		k.t.Fatal(err)
	}
	high, err := kadm.NewClient(c).ListEndOffsets(k.t.Context(), eosOut)
	if err != nil {
		k.t.Fatal(err)
	}
	for p := range int32(partitions) {
		if s, h := ends[eosOut][p].Offset, high[eosOut][p].Offset; s != h {
			k.t.Errorf("partition %d: the last stable offset is %d, the end %d", p, s, h)
		}
	}
	lost, again := 0, 0
	for p := range partitions {
		for i := range records {
			switch n := times[fmt.Sprintf("%d-%d", p, i)]; {
			case n == 0:
				lost++
			case n > 1:
				again++
			}
		}
	}
	if lost > 0 || again > 0 || len(times) != records*partitions {
		k.t.Errorf("%d records are lost, %d are there more than once, of %d", lost, again, records*partitions)
	}
}

// eosWorker is one instance of an application.
type eosWorker struct {
	t  *testing.T
	k  *child
	id string
}

// work works until it is stopped, and starts again when its client gives up, as an
// application does.
func (w *eosWorker) work(ctx context.Context) {
	for ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(w.k.address), kgo.ClientID(w.id), kgo.TransactionalID(w.id), kgo.TransactionTimeout(10*time.Second),
			kgo.ConsumerGroup(eosGroup), kgo.ConsumeTopics(eosIn), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxBytes(2<<10), kgo.FetchMaxPartitionBytes(512),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(retrySoon),
			kgo.HeartbeatInterval(beat), kgo.SessionTimeout(session), kgo.RebalanceTimeout(rebalance),
		)
		if err != nil {
			w.t.Error(err)
			return
		}
		w.session(ctx, s)
		s.Close()
	}
}

func (w *eosWorker) session(ctx context.Context, s *kgo.GroupTransactSession) {
	for ctx.Err() == nil {
		fs := s.PollFetches(ctx)
		if fs.IsClientClosed() || ctx.Err() != nil {
			return
		}
		if fs.NumRecords() == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			return
		}
		e := kgo.AbortingFirstErrPromise(s.Client())
		fs.EachRecord(func(r *kgo.Record) {
			s.Produce(ctx, &kgo.Record{Topic: eosOut, Partition: r.Partition, Value: r.Value}, e.Promise())
		})
		failed := e.Err()
		// A transaction that is under way is brought to its end, whatever ctx says.
		end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := s.End(end, failed == nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
}
