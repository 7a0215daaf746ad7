package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/storage/memlog"
)

// world is a coordinator, a broker behind it and the API before both.
type world struct {
	*stranger
	node   *coordinator.Node
	server *Server
	plane  *kfake.Cluster
	broker *kadm.Client
	ends   *Broker
}

// recordsFrom is the time of the first record of each partition; each next one is a second later.
var recordsFrom = time.UnixMilli(1_700_000_000_000)

// newWorld has a topic "orders" with two partitions of ten records each, of which
// the first two of partition 0 are deleted, and an empty topic "empty".
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	var err error
	if w.plane, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.SeedTopics(1, "empty")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.plane.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.plane.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w.broker = kadm.NewClient(client)
	for i := range 10 {
		for p := range int32(2) {
			r := &kgo.Record{Topic: "orders", Partition: p, Value: []byte("v"), Timestamp: recordsFrom.Add(time.Duration(i) * time.Second)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := kadm.Offsets{}
	cut.AddOffset("orders", 0, 2, -1)
	if _, err := w.broker.DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	b := memlog.New(coordinator.Index)
	w.node, err = coordinator.Open(coordinator.Options{
		Backend: b, Shards: 2, Log: zerolog.Nop(), Group: group.Config{
			MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour, MaxSize: 100, MetadataMaxChars: 4096,
			Retention: time.Hour, RetentionCheckInterval: time.Minute,
		},
		// Without Brokers: markers of groups are written, those of data are waited for.
		TxnShards: 2, ProducerIDs: &fresh{}, Txn: txn.Config{MaxTimeout: time.Hour, AbortInterval: time.Hour, TransactionVersion: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.node.Close(); b.Close() })
	w.ends, err = NewBroker(w.plane.ListenAddrs()[0], func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", w.plane.ListenAddrs()[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.ends.Close)
	w.server = New(Options{Coordinator: w.node, Versions: w.node, Broker: w.ends, Node: &adminpb.DescribeNodeResponse{Listen: "here:1"}})
	w.stranger = newStranger(t, dial(t, w.server))
	return w
}

func ask[T any](t *testing.T, n *coordinator.Node, req group.Request) T {
	t.Helper()
	r, err := askOne[T](t.Context(), n, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// commit is a client's commit of orders.
func (w *world) commit(id string, partition int32, offset int64) {
	w.t.Helper()
	w.commitTo(id, "orders", partition, offset)
}

func (w *world) commitTo(id, topic string, partition int32, offset int64) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = id, -1, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: partition, Offset: offset, LeaderEpoch: -1},
	}}}
	resp := ask[*kmsg.OffsetCommitResponse](w.t, w.node, group.Commit{OffsetCommitRequest: req})
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		w.t.Fatalf("commit: code %d", code)
	}
}

// join makes a stable group of one member, which reads all of orders, and returns its id.
func (w *world) join(id string) string {
	w.t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = id, "consumer", 60_000, 60_000
	instance := "i-" + rand.Text()
	req.InstanceID = &instance
	req.Protocols = []kmsg.JoinGroupRequestProtocol{
		{Name: "range", Metadata: (&kmsg.ConsumerMemberMetadata{Topics: []string{"orders"}}).AppendTo(nil)},
	}
	joined := ask[*kmsg.JoinGroupResponse](w.t, w.node, group.Join{Client: group.Client{ID: "c", Host: "/10.0.0.7"}, JoinGroupRequest: req})
	if joined.ErrorCode != 0 {
		w.t.Fatalf("join: code %d", joined.ErrorCode)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = id, joined.Generation, joined.MemberID
	assigned := kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "orders", Partitions: []int32{0, 1}}}}
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: assigned.AppendTo(nil)}}
	if synced := ask[*kmsg.SyncGroupResponse](w.t, w.node, group.Sync{SyncGroupRequest: sync}); synced.ErrorCode != 0 {
		w.t.Fatalf("sync: code %d", synced.ErrorCode)
	}
	return joined.MemberID
}

func (w *world) leave(id, member string) {
	w.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = id
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	if left := ask[*kmsg.LeaveGroupResponse](w.t, w.node, group.Leave{LeaveGroupRequest: req}); left.ErrorCode != 0 {
		w.t.Fatalf("leave: code %d", left.ErrorCode)
	}
}

// offsets are a group's: "orders-0=5".
func (w *world) offsets(id string) string {
	w.t.Helper()
	resp, err := fetch(w.t.Context(), w.node, id)
	if err != nil {
		w.t.Fatal(err)
	}
	var out string
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			out += fmt.Sprintf("%s-%d=%d ", topic.Topic, p.Partition, p.Offset)
		}
	}
	return out
}
