package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// everything asks for all offsets of some good groups.
func (b *bad) everything(from, groups int) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = fetchVersion
	for i := range groups {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberEpoch = fmt.Sprintf("good-%d", (from+i)%b.Groups), -1
		req.Groups = append(req.Groups, g)
	}
	return req
}

func neverRead(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	err = w.send(b.everything(0, 20))
	wait(ctx, w)
	return err
}

// pipeline writes until nobody takes it any more.
func pipeline(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	one := formatter.AppendRequest(nil, b.everything(0, 5), 1)
	_ = w.SetDeadline(time.Now().Add(hold)) // fails where it is closed already
	for err == nil {
		_, err = w.Write(bytes.Repeat(one, 100))
	}
	w.Close()
	return err
}

func sip(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.send(b.everything(0, 20)); err != nil {
		return err
	}
	for range 100 {
		if _, err := io.ReadFull(w.Conn, make([]byte, 1)); err != nil {
			return err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// often asks one thing over and over on a connection.
func (b *bad) often(ctx context.Context, n int, every time.Duration, ask func(w *wire, i int) error) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	for i := range n {
		if err := ask(w, i); err != nil {
			return err
		}
		if !pause(ctx, every) {
			return nil
		}
	}
	return nil
}

func fetchAll(ctx context.Context, b *bad, client int) error {
	return b.often(ctx, 100, 20*time.Millisecond, func(w *wire, i int) error {
		_, err := do(w, b.everything(client*500+i, 10), kmsg.NewPtrOffsetFetchResponse())
		return err
	})
}

func describeAll(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 4
	listed, err := do(w, list, kmsg.NewPtrListGroupsResponse())
	if err != nil {
		return err
	}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = 5
	for _, g := range listed.Groups {
		req.Groups = append(req.Groups, g.Group)
	}
	_, err = do(w, req, kmsg.NewPtrDescribeGroupsResponse())
	return err
}

func metadataAll(ctx context.Context, b *bad, _ int) error {
	return b.often(ctx, 100, 50*time.Millisecond, func(w *wire, _ int) error {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = 9
		_, err := do(w, req, kmsg.NewPtrMetadataResponse())
		return err
	})
}

// recordsRequest fetches a topic's records from offset on.
func recordsRequest(topic string, offset int64, wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 11, int32(wait.Milliseconds()), 1, 4<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 4<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func recordsUnread(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	for range 20 {
		if err = w.send(recordsRequest(topicName, 0, time.Second)); err != nil {
			break
		}
	}
	wait(ctx, w)
	return err
}

func waitAndVanish(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.send(recordsRequest(topicName, 16, 30*time.Second))
}

func halfProduce(ctx context.Context, b *bad, _ int) error {
	f := formatter.AppendRequest(nil, produceRequest(topicName, make([]byte, 100<<10)), 1)
	return bytesAndWait(f[:len(f)/2])(ctx, b, 0)
}

func produceGarbage(ctx context.Context, b *bad, _ int) error {
	return bytesAndRead(framed(append([]byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 'x', 0, 0, 0, 1}, random(1000)...)))(ctx, b, 0)
}

// produceRequest has one batch of one record.
func produceRequest(topic string, value []byte) *kmsg.ProduceRequest {
	r := kmsg.Record{Value: value}
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	body := r.AppendTo(nil)
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, NumRecords: 1, Records: body, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, 1, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = raw
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

var errUnexpected = errors.New("soak: not the answer that was to be expected")
