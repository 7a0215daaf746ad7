package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topic is what is produced to and fetched from.
type topic struct {
	name  string
	id    kadm.TopicID
	batch []byte // of a megabyte or a little less
	old   int64  // offsets below were there before the measurements
}

// prepare makes a topic with a gigabyte in it.
func prepare(ctx context.Context, addr string) (*topic, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	t := &topic{name: fmt.Sprintf("forwardbench-%d", time.Now().Unix())}
	made, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, map[string]*string{"segment.bytes": kmsg.StringPtr("1000000000")}, t.name)
	if err != nil {
		return nil, err
	}
	t.id = made.ID
	if _, err := t.produceKgo(ctx, addr, 1<<30); err != nil {
		return nil, err
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{t.name: {0: kgo.NewOffset().AtEnd()}})
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, t.name)
	if err != nil {
		return nil, err
	}
	end, _ := ends.Lookup(t.name, 0)
	t.old = end.Offset
	return t, t.takeBatch(addr)
}

func (t *topic) benches() []bench {
	var all []bench
	for _, size := range []int{100 << 10, 1 << 20, 8 << 20} {
		all = append(all, bench{fmt.Sprintf("fetch raw %d KB", size>>10), t.fetchRaw(size)})
	}
	return append(all, bench{"produce raw 1 MB", t.produceRaw}, bench{"fetch kgo", t.fetchKgo}, bench{"produce kgo", t.produceKgo})
}

func (t *topic) produceKgo(ctx context.Context, addr string, bytes int) (int, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(t.name), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(1_000_000), kgo.MaxBufferedRecords(20_000),
		kgo.DisableIdempotentWrite()) // so that a batch can be produced again
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	value := make([]byte, 4096)
	var failed error
	n := bytes / len(value)
	for range n {
		cl.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) { failed = errors.Join(failed, err) })
	}
	return n * len(value), errors.Join(cl.Flush(ctx), failed)
}

func (t *topic) fetchKgo(ctx context.Context, addr string, bytes int) (int, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(8<<20),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.name: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	got := 0
	for got < bytes {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return got, err
		}
		f.EachRecord(func(r *kgo.Record) { got += len(r.Value) })
	}
	return got, nil
}

// fetchRaw fetches answers of about one size, three at a time.
func (t *topic) fetchRaw(size int) func(context.Context, string, int) (int, error) {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 16, 500, 1, int32(size), -1
	rt := kmsg.NewFetchRequestTopic()
	rt.TopicID = t.id
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.PartitionMaxBytes = int32(size)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return func(_ context.Context, addr string, bytes int) (int, error) {
		step := int64(max(size/4096, 1))
		at := int64(0)
		return pipelined(addr, bytes, func() []byte {
			req.Topics[0].Partitions[0].FetchOffset = at
			if at += step; at >= t.old-step {
				at = 0
			}
			return frame(req)
		}, false)
	}
}

func (t *topic) produceRaw(_ context.Context, addr string, bytes int) (int, error) {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 12, 1, 10_000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = t.name
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = t.batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	one := frame(req)
	return pipelined(addr, bytes, func() []byte { return one }, true)
}

// takeBatch fetches batches to produce again.
func (t *topic) takeBatch(addr string) error {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 16, 500, 1, 1<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.TopicID = t.id
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.PartitionMaxBytes, rp.FetchOffset = 1<<20, t.old/2
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Write(frame(req)); err != nil {
		return err
	}
	var head [9]byte // length, correlation id, no tags
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-5)
	if _, err := io.ReadFull(nc, body); err != nil {
		return err
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 16
	if err := resp.ReadFrom(body); err != nil {
		return err
	}
	rp2 := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(rp2.ErrorCode); err != nil {
		return err
	}
	records := rp2.RecordBatches
	n := int(binary.BigEndian.Uint32(records[8:])) + 12 // the first batch alone
	if len(records) < n {
		return errors.New("not a whole batch")
	}
	t.batch = records[:n]
	return nil
}

func frame(req kmsg.Request) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("forwardbench"))
	return f.AppendRequest(nil, req, 1)
}

// pipelined keeps three requests under way until enough bytes have moved.
func pipelined(addr string, bytes int, next func() []byte, sent bool) (moved int, err error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	in := bufio.NewReaderSize(nc, 256<<10)
	under := 0
	for moved < bytes || under > 0 {
		for under < 3 && moved < bytes {
			f := next()
			if _, err := nc.Write(f); err != nil {
				return moved, err
			}
			if sent {
				moved += len(f)
			}
			under++
		}
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return moved, err
		}
		n := int(binary.BigEndian.Uint32(size[:]))
		if _, err := in.Discard(n); err != nil {
			return moved, err
		}
		if !sent {
			moved += n
		}
		under--
	}
	return moved, nil
}
