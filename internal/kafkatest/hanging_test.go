//go:build kafka

package kafkatest

import (
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestHangingTransactions: what Kafka's partitions have open and no transaction of kcoord has is
// found, and the command that find-hanging prints ends it: the last stable offset moves on. There are
// two of them: a batch that came to the broker in no transaction at all, as one that is late does
// where partitions are not verified, which nobody would ever end; and a transaction of
// the broker's own coordinator. A third is open in kcoord, and is none of them.
func TestHangingTransactions(t *testing.T) {
	b, o, r := newSidecar(t)
	admin := kadm.NewClient(r.client())
	defer admin.Close()
	r.createTopic()
	r.produce(6) // two to each partition

	ghost := b.ghost(0)
	foreign, foreignEpoch := openTxn(t, "foreign", 1, b.straight()...)
	openTxn(t, "alive", 2, kgo.SeedBrokers(r.at))
	r.stable(admin, map[int32]int64{0: 2, 1: 2, 2: 2})

	said := o.run(0, "txns", "find-hanging")
	o.says(said, fmt.Sprintf(`(?m)^records +0 +2 +%d/0 +2\S+ +-$`, ghost))
	o.says(said, fmt.Sprintf(`(?m)^records +1 +2 +%d/%d +2\S+ +-$`, foreign, foreignEpoch))
	commands := regexp.MustCompile(`(?m)^kcoord (txns abort .*)$`).FindAllStringSubmatch(said, -1)
	if len(commands) != 2 {
		t.Fatalf("there are %d commands in\n%s", len(commands), said)
	}

	// The command, without what makes it act, is a plan.
	plan := strings.Fields(strings.TrimSuffix(commands[0][1], " --yes"))
	o.says(o.run(0, plan...), `Nothing was aborted. Abort it with --yes.`)
	r.stable(admin, map[int32]int64{0: 2, 1: 2, 2: 2})
	for _, c := range commands {
		o.says(o.run(0, strings.Fields(c[1])...), `(?m)^Aborted\.$`)
	}
	r.stable(admin, map[int32]int64{0: 4, 1: 4, 2: 2}) // a record and its marker
	o.says(o.run(0, "txns", "find-hanging"), `^nothing hangs\s*$`)
	o.says(o.run(2, strings.Fields(commands[0][1])...), fmt.Sprintf("records-0: nothing of producer %d/0 hangs there", ghost))
	o.says(o.run(0, "txns", "list"), `(?m)^alive +Ongoing`)

	o.says(o.run(0, "txns", "abort", "alive", "--yes"), `(?m)^Aborted\.$`)
	r.stable(admin, map[int32]int64{0: 4, 1: 4, 2: 4})
	if got := r.readCommitted("records", map[int32]int64{0: 4, 1: 4, 2: 4}); len(got) != 6 {
		t.Errorf("committed records are %v", got)
	}
	o.kcoord.stop()
}

// newSidecar is a Kafka with a kcoord before it, whose admin API o's commands ask.
func newSidecar(t *testing.T) (*broker, *operator, *reader) {
	t.Helper()
	b := newBroker(t)
	o := &operator{t: t, dir: t.TempDir()}
	o.build()
	front := freePort(t)
	o.admin = freePort(t)
	o.env = append(os.Environ(), "KCOORD_ADMIN="+o.admin)
	b.start(front, "transaction.partition.verification.enable=false")
	o.serve = []string{"serve", "--listen", front, "--upstream", b.at, "--data", filepath.Join(o.dir, "data"), "--properties", b.properties, "--admin", o.admin}
	o.kcoord = o.start(o.serve...)
	return b, o, &reader{t: t, at: front}
}

// straight are for clients of the broker itself, whatever address it gives. They add
// partitions to transactions themselves: the broker would ask the address that it gives.
func (b *broker) straight() []kgo.Opt {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.Produce), 11)
	versions.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	return []kgo.Opt{
		kgo.SeedBrokers(b.at), kgo.MaxVersions(versions),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, b.at)
		}),
	}
}

// openTxn leaves a transaction open that has written a record to a partition.
func openTxn(t *testing.T, id string, partition int32, opts ...kgo.Opt) (producer int64, epoch int16) {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err == nil {
		t.Cleanup(c.Close)
		err = c.BeginTransaction()
	}
	if err == nil {
		err = c.ProduceSync(t.Context(), &kgo.Record{Topic: "records", Partition: partition, Value: []byte(id)}).FirstErr()
	}
	if err == nil {
		producer, epoch, err = c.ProducerID(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return producer, epoch
}

// ghost writes a record that says of itself that it is in a transaction, and is in none.
func (b *broker) ghost(partition int32) (producer int64) {
	b.t.Helper()
	c, err := kgo.NewClient(b.straight()...)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	fresh, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(b.t.Context(), c)
	if err == nil {
		err = kerr.ErrorForCode(fresh.ErrorCode)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	id := "ghost"
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &id, -1, 10_000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: "records", Partitions: []kmsg.ProduceRequestTopicPartition{{
		Partition: partition, Records: transactional(fresh.ProducerID),
	}}}}
	resp, err := c.Broker(1).Request(b.t.Context(), req)
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return fresh.ProducerID
}

// transactional is a batch of one record without key and value.
func transactional(producer int64) []byte {
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Magic: 2, Attributes: 0x10, FirstTimestamp: now, MaxTimestamp: now, ProducerID: producer, NumRecords: 1, Records: []byte{12, 0, 0, 0, 1, 1, 0},
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// stable waits until partitions of "records" are stable up to these offsets.
func (r *reader) stable(admin *kadm.Client, want map[int32]int64) {
	r.t.Helper()
	r.until(func(ctx context.Context) error {
		listed, err := admin.ListCommittedOffsets(ctx, "records")
		if err == nil {
			err = listed.Error()
		}
		for p, at := range want {
			if o, _ := listed.Lookup("records", p); err == nil && o.Offset != at {
				err = fmt.Errorf("partition %d is stable to %d, not %d", p, o.Offset, at)
			}
		}
		return err
	})
}
