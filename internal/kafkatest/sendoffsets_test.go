//go:build kafka

package kafkatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kcoord/kcoord/client"
)

// TestSendOffsets: by the gRPC API, the offsets that a live member has consumed count when the
// transaction commits, with the records that it made of them, also where kcoord is killed
// between the two; they are gone when it aborts; and of a member that has left nothing is taken.
func TestSendOffsets(t *testing.T) {
	_, o, r := newSidecar(t)
	r.createTopic()
	r.produce(6)
	admin := kadm.NewClient(r.client())
	defer admin.Close()
	conn, err := grpc.NewClient(o.admin, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := &transformer{reader: r, txns: client.NewTransactions(conn), admin: admin}
	w.consumer = r.client(kgo.ConsumerGroup(group), kgo.ConsumeTopics("records"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer w.consumer.Close()
	w.producer = r.client(kgo.TransactionalID("transformer"), kgo.DefaultProduceTopic("invoices"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer w.producer.Close()
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "invoices"); err != nil {
		t.Fatal(err)
	}

	member := w.consume(6)
	w.begin("aborted", member, nil)
	w.end(kgo.TryAbort)
	w.committed(0)

	w.begin("committed", member, nil)
	w.committed(0)
	o.kcoord.kill()
	o.kcoord = o.start(o.serve...)
	w.end(kgo.TryCommit)
	w.committed(6)

	r.produce(3)
	member = w.consume(3)
	if err := w.consumer.LeaveGroupContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.begin("of nobody", member, kerr.UnknownMemberID)
	w.end(kgo.TryAbort)
	w.committed(6)

	if got := r.readCommitted("invoices", r.ended(admin, "invoices")); len(got) != 1 || got["committed"] != 1 {
		t.Errorf("committed records are %v", got)
	}
	o.kcoord.stop()
}

// transformer is a consume-transform-produce loop, step by step.
type transformer struct {
	*reader
	consumer, producer *kgo.Client
	txns               *client.Transactions
	admin              *kadm.Client
	offsets            map[string]map[int32]kgo.EpochOffset // that are consumed
}

// consume consumes records, and returns who has.
func (w *transformer) consume(n int) client.ConsumerGroupMetadata {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for n > 0 {
		fetched := w.consumer.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			w.t.Fatalf("%d records are missing: %v", n, err)
		}
		n -= fetched.NumRecords()
	}
	w.offsets = w.consumer.UncommittedOffsets()
	member, err := client.MetadataOf(w.consumer)
	if err != nil {
		w.t.Fatal(err)
	}
	return member
}

// begin writes a record and sends offsets, which is to go as said.
func (w *transformer) begin(value string, by client.ConsumerGroupMetadata, want error) {
	w.t.Helper()
	err := w.producer.BeginTransaction()
	if err == nil {
		err = w.producer.ProduceSync(w.t.Context(), kgo.StringRecord(value)).FirstErr()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.txns.SendOffsets(w.t.Context(), w.producer, by, w.offsets); !errors.Is(err, want) {
		w.t.Fatalf("offsets of %q: %v, not %v", value, err, want)
	}
}

func (w *transformer) end(how kgo.TransactionEndTry) {
	w.t.Helper()
	if err := w.producer.EndTransaction(w.t.Context(), how); err != nil {
		w.t.Fatal(err)
	}
}

// committed waits until the group is past so many records: a fetch tells of no offsets that
// are pending, and of those committed when the marker is written.
func (w *transformer) committed(want int64) {
	w.t.Helper()
	w.until(func(ctx context.Context) error {
		at, err := w.admin.FetchOffsets(ctx, group)
		sum := int64(0)
		at.Each(func(o kadm.OffsetResponse) { sum += max(o.At, 0) })
		if err == nil && sum != want {
			err = errors.New("not there")
		}
		return err
	})
}
