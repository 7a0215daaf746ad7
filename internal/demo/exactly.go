package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// exactly is the demo's second part: a consume-transform-produce loop of two workers.
type exactly struct {
	*demo
	dies, lives *worker
	last        standing // of the one that dies
	died        time.Time
}

// exactlyOnce lets two workers turn orders into invoices, kills one in the middle of a
// transaction, and kcoord too, and looks at what has come of it.
func (d *demo) exactlyOnce(ctx context.Context) error {
	x := &exactly{demo: d}
	defer x.stop()
	d.say("\nExactly once: transactions, a worker that dies in one, and its ghost.\n")
	for _, step := range []func(context.Context) error{x.work, x.crash, x.takeOver, x.count, x.ghosts} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *exactly) stop() {
	for _, w := range []*worker{x.dies, x.lives} {
		if w != nil {
			w.stop()
		}
	}
}

// work lets the workers run until one of them has died.
func (x *exactly) work(ctx context.Context) error {
	x.title("Two workers, dora and emil, make an invoice of each order: up to %d\n"+
		"    of them and their orders' offsets are one transaction.", perWork)
	if _, err := x.admin.CreateTopic(ctx, partitions, 1, nil, output); err != nil {
		return fmt.Errorf("demo: creating the topic: %w", err)
	}
	const doraTimeout, emilTimeout, end = 2 * time.Second, 30 * time.Second, 4
	x.dies = newWorker("dora", x.server.address, doraTimeout, end)
	x.lives = newWorker("emil", x.server.address, emilTimeout, 0)
	select {
	case <-x.dies.dead:
	case <-ctx.Done():
		return fmt.Errorf("demo: the workers do not get on: %w", context.Cause(ctx))
	}
	x.died = time.Now()
	n, last, err := x.dies.state()
	if err != nil {
		return err
	}
	x.last = last
	x.detail("dora has died after %d transactions, and before the end of the next,", n)
	x.detail("whose invoices and offsets are there. Nobody was told.")
	return nil
}

func (x *exactly) crash(ctx context.Context) error {
	x.title("Kill kcoord with SIGKILL, too, and start it again.")
	x.server.kill()
	took, err := x.server.start(ctx)
	if err != nil {
		return err
	}
	x.detail("It answers after %s.", took)
	return x.connect()
}

// takeOver waits until every order's offset is committed.
func (x *exactly) takeOver(ctx context.Context) error {
	x.title("emil takes over.")
	var failed error
	err := until(ctx, func() bool {
		if _, _, failed = x.lives.state(); failed != nil {
			return true
		}
		sum, err := x.committed(ctx)
		return err == nil && sum == x.written
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("demo: emil does not take over: %w", err)
	}
	_, generation := x.lives.membership()
	if generation <= x.last.generation {
		return fmt.Errorf("demo: emil took over in generation %d, dora was in %d", generation, x.last.generation)
	}
	x.detail("dora's transaction was aborted when its time was over, her partitions")
	x.detail("were emil's in generation %d, and all was done %s after her end.", generation, time.Since(x.died).Round(100*time.Millisecond))
	return nil
}

func (x *exactly) committed(ctx context.Context) (sum int64, err error) {
	offsets, err := x.admin.FetchOffsets(ctx, workGroup)
	if err != nil {
		return 0, err
	}
	offsets.Each(func(o kadm.OffsetResponse) { sum += o.At })
	return sum, offsets.Error()
}

// count reads the output as its readers do.
func (x *exactly) count(ctx context.Context) error {
	x.title("Read the invoices with read_committed.")
	ends, err := x.ends(ctx)
	if err != nil {
		return err
	}
	all, err := x.read(ctx, ends, kgo.ReadUncommitted())
	if err != nil {
		return err
	}
	committed, err := x.read(ctx, ends, kgo.ReadCommitted())
	if err != nil {
		return err
	}
	total := 0
	for _, n := range all {
		total += n
	}
	for i := range x.written {
		if n := committed[fmt.Sprintf("invoice for order %d", i)]; n != 1 {
			return fmt.Errorf("demo: order %d has %d invoices", i, n)
		}
	}
	if len(committed) != int(x.written) || total <= len(committed) {
		return fmt.Errorf("demo: %d invoices of %d orders, %d with those that were aborted", len(committed), x.written, total)
	}
	x.detail("Each of the %d orders has one. %d more were aborted, and are not read.", x.written, total-len(committed))
	return nil
}

// ends are where the output's partitions end, once nothing holds readers back.
func (x *exactly) ends(ctx context.Context) (ends kadm.ListedOffsets, err error) {
	done := until(ctx, func() bool {
		var stable kadm.ListedOffsets
		if ends, err = x.admin.ListEndOffsets(ctx, output); err != nil {
			return false
		}
		stable, err = x.admin.ListCommittedOffsets(ctx, output)
		for p, end := range ends[output] {
			if s, has := stable.Lookup(output, p); !has || s.Offset != end.Offset || end.Err != nil {
				return false
			}
		}
		return err == nil
	})
	if done != nil {
		return nil, fmt.Errorf("demo: a transaction stays open: %w", done)
	}
	return ends, nil
}

// read reads the output up to its ends, and counts how often it has each value.
func (x *exactly) read(ctx context.Context, ends kadm.ListedOffsets, level kgo.IsolationLevel) (map[string]int, error) {
	from, open := map[int32]kgo.Offset{}, map[int32]int64{}
	for p, end := range ends[output] {
		if end.Offset > 0 {
			from[p], open[p] = kgo.NewOffset().At(0), end.Offset
		}
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(x.server.address), kgo.ClientID("reader"), kgo.FetchIsolationLevel(level),
		kgo.KeepControlRecords(), // an end may be one
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{output: from}))
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	defer c.Close()
	values := map[string]int{}
	for len(open) > 0 {
		fetched := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("demo: reading the invoices: %w", err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values[string(r.Value)]++
			}
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
		})
	}
	return values, nil
}
