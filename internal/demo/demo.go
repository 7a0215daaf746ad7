package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	group      = "billing"
	topic      = "orders"
	partitions = 6
	batchBytes = 1 << 10          // small, so that members take turns between their partitions
	limit      = 60 * time.Second // for all of it: then something hangs
)

var memberNames = []string{"anna", "ben", "carla"}

// Run plays the demo with a kcoord executable. The error says which of the
// things shown is not true, or what went wrong.
func Run(ctx context.Context, kcoord string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	folder, err := os.MkdirTemp("", "kcoord-demo-")
	if err != nil {
		return fmt.Errorf("demo: no temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	d := &demo{out: out, began: time.Now(), server: &server{executable: kcoord, folder: folder}}
	defer d.server.kill()
	defer d.leave()

	for _, step := range []func(context.Context) error{
		d.start, d.fill, d.join, d.consume, d.crash, d.restart, d.compare, d.goOn, d.show, d.exactlyOnce, d.downgrade,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return d.server.explain(err)
		}
	}
	d.say("\nEverything shown was checked. It took %s.", time.Since(d.began).Round(100*time.Millisecond))
	return nil
}

// demo is one performance.
type demo struct {
	out    io.Writer
	began  time.Time
	step   int
	server *server

	client  *kgo.Client
	admin   *kadm.Client
	written int64 // records that were acknowledged
	ledger  *ledger
	members []*member
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// title begins a step, detail tells what came of it.
func (d *demo) title(format string, args ...any) {
	d.step++
	fmt.Fprintf(d.out, "%d. %s\n", d.step, fmt.Sprintf(format, args...))
}

func (d *demo) detail(format string, args ...any) {
	fmt.Fprintf(d.out, "   %s\n", fmt.Sprintf(format, args...))
}

func (d *demo) start(ctx context.Context) error {
	d.say("A consumer group, its offsets, and a coordinator that is killed in the middle.\n")
	d.title("Start kcoord with its embedded data plane (kcoord dev).")
	took, err := d.server.start(ctx)
	if err != nil {
		return err
	}
	d.detail("It answers on %s after %s; its log is in %s.", d.server.address, took, d.server.folder)
	return d.connect()
}

// connect makes the demo's own client, which is neither of the members.
func (d *demo) connect() (err error) {
	if d.client != nil {
		d.client.Close()
	}
	d.client, err = kgo.NewClient(kgo.SeedBrokers(d.server.address), kgo.ClientID("demo"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(batchBytes))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.admin = kadm.NewClient(d.client)
	return nil
}

func (d *demo) fill(ctx context.Context) error {
	d.title("Create the topic %s with %d partitions and write to it.", topic, partitions)
	if _, err := d.admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return fmt.Errorf("demo: creating the topic: %w", err)
	}
	if err := d.write(ctx, 3000); err != nil {
		return err
	}
	d.detail("%d records are in it.", d.written)
	return nil
}

// write produces records, as many to each partition.
func (d *demo) write(ctx context.Context, n int) error {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Appendf(nil, "order %d", d.written+int64(i))}
	}
	if err := d.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("demo: writing records: %w", err)
	}
	d.written += int64(n)
	return nil
}

func (d *demo) leave() {
	for _, m := range d.members {
		m.stop()
	}
	if d.client != nil {
		d.client.Close()
	}
}
