package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	addr, name string
	cl         *kgo.Client
}

func newFranz(addr, name string) (library, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return &franz{addr, name, cl}, err
}

func (f *franz) close() { f.cl.Close() }

func (f *franz) createTopic(ctx context.Context) error {
	_, err := kadm.NewClient(f.cl).CreateTopic(ctx, partitions, 1, nil, f.name)
	return err
}

func (f *franz) produce(ctx context.Context, lo, hi int) error {
	var all []*kgo.Record
	for i := lo; i < hi; i++ {
		all = append(all, &kgo.Record{Topic: f.name, Partition: int32(i % partitions), Value: []byte(strconv.Itoa(i))})
	}
	return f.cl.ProduceSync(ctx, all...).FirstErr()
}

func (f *franz) consume(ctx context.Context, assigned, note func(int)) error {
	var owned int
	change := func(by int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, ps map[string][]int32) {
			owned += by * len(ps[f.name])
			assigned(owned)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.addr), kgo.ConsumerGroup(f.name), kgo.ConsumeTopics(f.name), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(change(1)), kgo.OnPartitionsRevoked(change(-1)))
	if err != nil {
		return err
	}
	defer cl.Close()
	for ctx.Err() == nil {
		got := cl.PollFetches(ctx)
		if err := got.Err(); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if got.NumRecords() > 0 {
			if err := cl.CommitUncommittedOffsets(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		got.EachRecord(func(r *kgo.Record) {
			n, _ := strconv.Atoi(string(r.Value))
			note(n)
		})
	}
	return nil
}

func (f *franz) committed(ctx context.Context) (total int64, err error) {
	got, err := kadm.NewClient(f.cl).FetchOffsets(ctx, f.name)
	got.Each(func(o kadm.OffsetResponse) { total += o.At })
	return total, err
}
