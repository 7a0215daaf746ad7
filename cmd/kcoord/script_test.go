package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Of scripts about offsets:
//
//	topic NAME PARTITIONS RECORDS       makes a topic with so many records in each partition, a second apart from 2026-09-01 on
//	offsets GROUP TOPIC P=OFFSET…       commits offsets
//	member GROUP TOPIC                  has a consumer in the group until the script ends, or leave
//	leave                               takes it out again
//	broker                              starts a broker with a coordinator of its own, $BROKER

// client connects to $KAFKA, whatever address that gives for itself.
func client(ts *testscript.TestScript, opts ...kgo.Opt) *kgo.Client {
	at := ts.Getenv("KAFKA")
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(at), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at)
		}))...)
	ts.Check(err)
	return c
}

func number(ts *testscript.TestScript, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	ts.Check(err)
	return n
}

func makeTopic(ts *testscript.TestScript, _ bool, args []string) {
	c := client(ts)
	defer c.Close()
	partitions := int32(number(ts, args[1]))
	_, err := kadm.NewClient(c).CreateTopic(context.Background(), partitions, 1, nil, args[0])
	ts.Check(err)
	var records []*kgo.Record
	for i := range number(ts, args[2]) {
		for p := range partitions {
			records = append(records, &kgo.Record{
				Topic: args[0], Partition: p, Value: []byte("v"),
				Timestamp: time.Date(2026, 9, 1, 0, 0, int(i), 0, time.UTC),
			})
		}
	}
	ts.Check(c.ProduceSync(context.Background(), records...).FirstErr())
}

func commitOffsets(ts *testscript.TestScript, _ bool, args []string) {
	c := client(ts)
	defer c.Close()
	offsets := kadm.Offsets{}
	for _, word := range args[2:] {
		p, at, _ := strings.Cut(word, "=")
		offsets.AddOffset(args[1], int32(number(ts, p)), number(ts, at), -1)
	}
	ts.Check(kadm.NewClient(c).CommitAllOffsets(context.Background(), args[0], offsets))
}

func joinGroup(ts *testscript.TestScript, _ bool, args []string) {
	assigned := make(chan struct{}, 1)
	c := client(ts, kgo.ConsumerGroup(args[0]), kgo.ConsumeTopics(args[1]), kgo.ClientID("reader"), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
	running.Store(fmt.Sprintf("member %p", ts), c)
	ts.Defer(func() { leaveGroup(ts, false, nil) })
	go func() {
		for !c.PollFetches(context.Background()).IsClientClosed() {
		}
	}()
	<-assigned
}

func leaveGroup(ts *testscript.TestScript, _ bool, _ []string) {
	if c, ok := running.LoadAndDelete(fmt.Sprintf("member %p", ts)); ok {
		ts.Check(c.(*kgo.Client).LeaveGroupContext(context.Background()))
		c.(*kgo.Client).Close()
	}
}

// startBroker starts a broker with a coordinator of its own: $BROKER. It advertises
// $FRONT, a free port for the kcoord in front of it.
func startBroker(ts *testscript.TestScript, _ bool, _ []string) {
	front, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Check(front.Close())
	ts.Setenv("FRONT", front.Addr().String())
	b, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
		l, err := net.Listen(network, "127.0.0.1:0")
		if err == nil {
			ts.Setenv("BROKER", l.Addr().String())
			l = renamed{l, front.Addr()}
		}
		return l, err
	}))
	ts.Check(err)
	ts.Defer(b.Close)
}

// renamed is a listener that goes by another address.
type renamed struct {
	net.Listener
	addr net.Addr
}

func (r renamed) Addr() net.Addr { return r.addr }
