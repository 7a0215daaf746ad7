package clienttest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	invoices = "invoices"
	// between two kills the workers commit so many transactions at least …
	lap = 20
	// … of at most so many records.
	most = 5
)

// TestExactlyOnce kills kcoord again and again under workers that consume, transform
// and produce with transactions, while one of them comes and goes. In the end the
// output has every record of the input once, and the offsets are at its end.
//
// It goes on for EXACTLY_ONCE_FOR (1m), where that is set, and for some kills in any case.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	kills := 16
	if testing.Short() {
		kills = 2
	}
	var atLeast time.Duration
	if s := os.Getenv("EXACTLY_ONCE_FOR"); s != "" {
		var err error
		if atLeast, err = time.ParseDuration(s); err != nil {
			t.Fatalf("EXACTLY_ONCE_FOR: %v", err)
		}
	}
	began := time.Now()
	k := start(t, "transaction.abort.timed.out.transaction.cleanup.interval.ms=500")
	g := newGroup(t, franz("kgo", ""), k)
	k.topic(invoices, 3, 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var producing sync.WaitGroup
	// A lap brings somewhat more records than it needs, and no more: what the workers are
	// behind after the last kill must not depend on how fast the machine writes records.
	var rounds atomic.Int64
	producing.Go(func() { g.keepProducing(ctx, func() bool { return rounds.Add(-1) >= 0 }) })

	var committed atomic.Int64
	work := func(name string) *worker { return startWorker(t, k, g.id, name, &committed) }
	workers := map[string]*worker{"anna": work("anna"), "ben": work("ben"), "carla": work("carla")}
	i := 0
	for ; i < kills || time.Since(began) < atLeast; i++ {
		rounds.Store(3 * lap * most / 2 / partitions)
		before := committed.Load()
		until(t, "the workers go on", func() error {
			if n := committed.Load() - before; n < lap {
				return fmt.Errorf("%d transactions are committed", n)
			}
			return nil
		})
		k.kill()
		k.restart()
		switch i % 4 { // the next kill meets a rebalance
		case 1:
			workers["dora"] = work("dora")
		case 3:
			workers["dora"].leave()
		}
	}
	stop()
	producing.Wait()
	e := g.ends()
	g.committedTo(e)
	for _, w := range workers {
		w.leave()
	}
	k.exactly(e)
	g.committedTo(e)
	t.Logf("%d kills, %d transactions, partitions end at %v", i, committed.Load(), e)
}

// committedTo waits until the group's offsets are where the partitions end.
func (g *group) committedTo(e ends) {
	g.t.Helper()
	until(g.t, "all offsets are committed", func() error {
		at, err := g.admin.committed(g.id, topic, partitions)
		for p, end := range e {
			if err == nil && at[p] != end {
				err = fmt.Errorf("partition %d: %d of %d", p, at[p], end)
			}
		}
		return err
	})
}

// exactly checks that the output has each record of the input once. It is read as far
// as it goes, once no open transaction holds readers back.
func (k *child) exactly(e ends) {
	k.t.Helper()
	var to kadm.ListedOffsets
	admin := kadm.NewClient(k.client())
	until(k.t, "no transaction is open", func() (err error) {
		if to, err = admin.ListEndOffsets(k.t.Context(), invoices); err != nil {
			return err
		}
		stable, err := admin.ListCommittedOffsets(k.t.Context(), invoices)
		for p, end := range to[invoices] {
			if s, _ := stable.Lookup(invoices, p); err == nil && (s.Err != nil || end.Err != nil || s.Offset != end.Offset) {
				err = fmt.Errorf("partition %d ends at %d, and is stable to %d", p, end.Offset, s.Offset)
			}
		}
		return err
	})
	from, open := map[int32]kgo.Offset{}, map[int32]int64{}
	for p, end := range to[invoices] {
		if end.Offset > 0 {
			from[p], open[p] = kgo.NewOffset().At(0), end.Offset
		}
	}
	c := k.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{invoices: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	times := map[string]int{}
	for len(open) > 0 {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				times[string(r.Value)]++
			}
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
		})
		if ctx.Err() != nil {
			k.t.Fatalf("the output cannot be read to its ends %v", open)
		}
	}
	var records int
	for p, end := range e {
		for o := range end {
			records++
			if n := times[invoice(p, o)]; n != 1 {
				k.t.Errorf("the record at offset %d of partition %d is in the output %d times", o, p, n)
			}
		}
	}
	if len(times) != records {
		k.t.Errorf("the output has %d records of %d", len(times), records)
	}
}

// invoice is what becomes of a record.
func invoice(partition int32, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

// worker is a consume-transform-produce loop.
type worker struct {
	end  context.CancelFunc
	done sync.WaitGroup
	once sync.Once
}

func startWorker(t testing.TB, k *child, group, name string, committed *atomic.Int64) *worker {
	ctx, end := context.WithCancel(context.Background())
	w := &worker{end: end}
	w.done.Go(func() {
		for ctx.Err() == nil {
			if err := work(ctx, k, group, name, committed); err != nil && ctx.Err() == nil {
				t.Logf("worker %s takes a new client: %v", name, err)
			}
		}
	})
	t.Cleanup(w.leave)
	return w
}

func (w *worker) leave() {
	w.once.Do(func() {
		w.end()
		w.done.Wait()
	})
}

// work is the life of a client: to the first error, since which it does not know where
// its transaction is.
func work(ctx context.Context, k *child, group, name string, committed *atomic.Int64) error {
	s, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(k.address), kgo.ClientID(name),
		kgo.TransactionalID(group+"-"+name), kgo.TransactionTimeout(session),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(10*beat),
		kgo.HeartbeatInterval(beat), kgo.SessionTimeout(session), kgo.RebalanceTimeout(rebalance),
		kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(retrySoon), kgo.DefaultProduceTopic(invoices),
	)
	if err != nil {
		return err
	}
	defer func() {
		leave, cancel := context.WithTimeout(context.Background(), session) // kcoord may be dead
		defer cancel()
		_ = s.Client().LeaveGroupContext(leave)
		s.CloseAllowingRebalance()
	}()
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, time.Second)
		records := s.PollRecords(poll, most).Records()
		cancel()
		if len(records) == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			return err
		}
		first := kgo.AbortingFirstErrPromise(s.Client())
		for _, r := range records {
			s.Produce(ctx, kgo.StringRecord(invoice(r.Partition, r.Offset)), first.Promise())
		}
		done, err := s.End(ctx, kgo.TransactionEndTry(first.Err() == nil))
		if err != nil {
			return err
		}
		if done {
			committed.Add(1)
		}
	}
	return nil
}
