package embedded

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Topics and records are there again after a restart, under the sidecar's address.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	for round := range 2 {
		b, err := Start(Options{Advertised: "sidecar.example:9092", DataDir: dir, AutoCreateTopics: true, Partitions: 3, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		// Every address leads to the broker, as the sidecar would.
		cl, err := kgo.NewClient(kgo.SeedBrokers("sidecar.example:9092"), kgo.AllowAutoTopicCreation(),
			kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "made", Partition: 0, Value: fmt.Append(nil, round)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		adm := kadm.NewClient(cl)
		md, err := adm.Metadata(ctx, "made")
		if err != nil {
			t.Fatal(err)
		}
		if len(md.Brokers) != 1 || md.Brokers[0].Host != "sidecar.example" || md.Brokers[0].Port != 9092 || md.Cluster != "kcoord-dev" {
			t.Errorf("metadata %+v", md)
		}
		if n := len(md.Topics["made"].Partitions); n != 3 {
			t.Errorf("%d partitions", n)
		}
		ends, err := adm.ListEndOffsets(ctx, "made")
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
		if total != int64(round+1) {
			t.Errorf("round %d: %d records", round, total)
		}
		cl.Close()
		b.Close()
	}
}

func TestNoAutoCreation(t *testing.T) {
	b, err := Start(Options{Advertised: "127.0.0.1:1", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = kmsg.StringPtr("none")
	req.Topics, req.AllowAutoTopicCreation = append(req.Topics, rt), true
	resp, err := req.RequestWith(context.Background(), cl)
	if err != nil || resp.Topics[0].ErrorCode != 3 {
		t.Fatal(resp, err)
	}
	if _, err := Start(Options{Advertised: "nonsense"}); err == nil {
		t.Fatal("an address without a port is taken")
	}
}
