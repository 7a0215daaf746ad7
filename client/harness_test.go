package client

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kcoord/kcoord/api/admin"
	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/api/kafka"
	"github.com/kcoord/kcoord/api/kafka/embedded"
	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/storage/memlog"
)

// kcoord is `kcoord dev` in process.
type kcoord struct {
	t       *testing.T
	address string
	txns    *Transactions
	admin   *kadm.Client
}

// newKcoord has a topic "in" of two partitions with a record each, and an empty one "out".
func newKcoord(t *testing.T) *kcoord {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	plane, err := embedded.Start(embedded.Options{Advertised: address, Log: zerolog.Nop()})
	must(t, err)
	t.Cleanup(plane.Close)
	up := upstream.Open(upstream.Options{Dial: plane.Dial, Advertised: address, Refresh: 20 * time.Millisecond, Log: zerolog.Nop()})
	t.Cleanup(up.Close)
	ids, markers := up.ProducerIDs(true), up.Markers()
	log := memlog.New(coordinator.Index)
	node, err := coordinator.Open(coordinator.Options{
		Backend: log, Shards: 2, TxnShards: 2, Log: zerolog.Nop(), ProducerIDs: ids, Brokers: markers,
		Group: group.Config{
			MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour, MaxSize: 100, MetadataMaxChars: 4096,
			Retention: time.Hour, RetentionCheckInterval: time.Minute,
		},
		Txn: txn.Config{MaxTimeout: time.Hour, AbortInterval: time.Hour, TransactionVersion: 2, FenceStale: true},
	})
	must(t, err)
	t.Cleanup(func() { node.Close(); ids.Close(); markers.Close(); log.Close() })
	k := kafka.New(kafka.Options{
		Coordinator: node, Transactions: node, OffsetsPartitions: node.Partitions(), TransactionVersion: 2, Embedded: true, Upstream: up,
		Limits: kafka.Limits{MaxRequestBytes: 1 << 20, MaxIdle: time.Hour, MaxConnections: 100, MaxConnectionsPerIP: 100}, Log: zerolog.Nop(),
	})
	go func() { _ = k.Serve(l) }() // ends with Shutdown
	broker, err := admin.NewBroker(address, up.Dial)
	must(t, err)
	t.Cleanup(broker.Close)
	server := admin.New(admin.Options{Coordinator: node, Broker: broker, Node: &adminpb.DescribeNodeResponse{}})
	pipe := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(pipe) }() // ends with Stop
	conn, err := grpc.NewClient("passthrough:///kcoord", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		_ = k.Shutdown(cut)
	})
	c := &kcoord{t: t, address: address, txns: NewTransactions(conn)}
	c.admin = kadm.NewClient(c.client())
	_, err = c.admin.CreateTopics(t.Context(), 2, 1, nil, "in", "out")
	must(t, err)
	writer := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, writer.ProduceSync(t.Context(), &kgo.Record{Topic: "in"}, &kgo.Record{Topic: "in", Partition: 1}).FirstErr())
	return c
}

func (k *kcoord) client(opts ...kgo.Opt) *kgo.Client {
	k.t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(k.address), kgo.MetadataMinAge(20*time.Millisecond))...)
	must(k.t, err)
	k.t.Cleanup(c.CloseAllowingRebalance)
	return c
}

// consumer is in group g from when it polls.
func (k *kcoord) consumer(opts ...kgo.Opt) *kgo.Client {
	return k.client(append(opts, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(50*time.Millisecond), kgo.Balancers(kgo.RangeBalancer()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
}

// committed is where the group is in partition 0, as anybody sees it; -1: nowhere.
func (k *kcoord) committed() int64 {
	k.t.Helper()
	all, err := k.admin.FetchOffsets(k.t.Context(), "g")
	must(k.t, err)
	if at, has := all.Lookup("in", 0); has {
		return at.At
	}
	return -1
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
