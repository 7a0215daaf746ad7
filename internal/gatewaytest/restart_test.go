//go:build kafka

package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker dies with -9 and comes back, under producers and a group. No
// client ever sees a broker's own address, every record is consumed, and the
// offsets end where the log does.
func TestBrokerRestarts(t *testing.T) {
	topic(t, "restarts", 6, 3)
	var mu sync.Mutex
	sent, seen := map[string]bool{}, map[string]bool{}
	count := func(of map[string]bool) int { mu.Lock(); defer mu.Unlock(); return len(of) }
	note := func(in map[string]bool, r *kgo.Record) { mu.Lock(); defer mu.Unlock(); in[string(r.Value)] = true }

	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	producer := client(t, kgo.DefaultProduceTopic("restarts"), kgo.MaxBufferedRecords(500), kgo.ProducerLinger(5*time.Millisecond))
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			producer.Produce(context.Background(), kgo.StringRecord(fmt.Sprint(i)), func(r *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				note(sent, r)
			})
		}
		if err := producer.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	})
	consuming, done := context.WithCancel(context.Background())
	var consumers sync.WaitGroup
	for range 2 {
		cl := client(t, kgo.ConsumerGroup("restarts"), kgo.ConsumeTopics("restarts"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(200*time.Millisecond))
		consumers.Go(func() {
			for consuming.Err() == nil {
				cl.PollFetches(consuming).EachRecord(func(r *kgo.Record) { note(seen, r) })
			}
			if err := cl.CommitUncommittedOffsets(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	progress := func(what string) {
		t.Helper()
		s, c := count(sent)+3000, count(seen)+3000
		await(t, what, func(context.Context) error {
			if count(sent) < s || count(seen) < c {
				return fmt.Errorf("%d sent, %d consumed", count(sent), count(seen))
			}
			return nil
		})
	}
	progress("before")
	for _, id := range []int32{2} {
		if err := the.kill(id); err != nil {
			t.Fatal(err)
		}
		progress(fmt.Sprintf("without broker %d", id))
		if err := the.start(id); err != nil {
			t.Fatal(err)
		}
		inSync(t, "restarts", id)
		progress(fmt.Sprintf("with broker %d again", id))
	}
	cancel()
	all.Wait()
	await(t, "all is consumed", func(context.Context) error {
		if s, c := count(sent), count(seen); c < s {
			return fmt.Errorf("%d of %d", c, s)
		}
		return nil
	})
	done()
	consumers.Wait()
	lag, err := kadm.NewClient(client(t)).Lag(t.Context(), "restarts")
	if err != nil || lag.Error() != nil || lag["restarts"].Lag.Total() != 0 {
		t.Errorf("lag %v: %v", lag["restarts"].Lag, err)
	}
	t.Logf("%d records", len(sent))
}

// inSync waits until a broker is in all replica sets and leads again.
func inSync(t *testing.T, topic string, id int32) {
	t.Helper()
	adm := kadm.NewClient(client(t))
	await(t, fmt.Sprintf("broker %d in sync", id), func(ctx context.Context) error {
		got, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		for _, p := range got[topic].Partitions {
			if !slices.Contains(p.ISR, id) {
				return errors.New("not yet")
			}
		}
		_, err = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, got.TopicsSet())
		return err
	})
}

// batch is one of one record, which a broker checks before it says who leads.
func batch() []byte {
	b := kmsg.RecordBatch{Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: []byte{12, 0, 0, 0, 1, 0, 0}}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// To whom a client should go instead is told by the address of that one's port, in
// Produce and in Fetch.
func TestEndpoints(t *testing.T) {
	topic(t, "endpoints", 1, 1)
	got, err := kadm.NewClient(client(t)).ListTopics(t.Context(), "endpoints")
	if err != nil {
		t.Fatal(err)
	}
	leader := got["endpoints"].Partitions[0].Leader
	other := leader%3 + 1
	cl := client(t)

	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 12, 1, 1000
	pt := kmsg.NewProduceRequestTopic()
	pt.Topic, pt.TopicID = "endpoints", got["endpoints"].ID
	pt.Partitions = append(pt.Partitions, kmsg.ProduceRequestTopicPartition{Records: batch()})
	produce.Topics = append(produce.Topics, pt)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.MaxBytes, fetch.SessionEpoch = 16, 1000, -1
	ft := kmsg.NewFetchRequestTopic()
	ft.TopicID = got["endpoints"].ID
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.CurrentLeaderEpoch, fp.PartitionMaxBytes = -1, 1000
	ft.Partitions = append(ft.Partitions, fp)
	fetch.Topics = append(fetch.Topics, ft)

	check := func(what string, id int32, host string, port int32, err error) {
		t.Helper()
		if err != nil || id != leader || host != "127.0.0.1" || int(port) != the.in[leader] {
			t.Errorf("%s: leader %d is told to be %d at %s:%d: %v", what, leader, id, host, port, err)
		}
	}
	presp, err := cl.Broker(int(other)).Request(t.Context(), produce)
	if err != nil || len(presp.(*kmsg.ProduceResponse).Brokers) != 1 {
		t.Fatalf("Produce: %+v: %v", presp, err)
	}
	b := presp.(*kmsg.ProduceResponse).Brokers[0]
	check("Produce", b.NodeID, b.Host, b.Port, err)
	fresp, err := cl.Broker(int(other)).Request(t.Context(), fetch)
	if err != nil || len(fresp.(*kmsg.FetchResponse).Brokers) != 1 {
		t.Fatalf("Fetch: %+v: %v", fresp, err)
	}
	f := fresp.(*kmsg.FetchResponse).Brokers[0]
	check("Fetch", f.NodeID, f.Host, f.Port, err)
}
