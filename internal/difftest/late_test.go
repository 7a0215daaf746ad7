//go:build kafka

package difftest

import (
	"flag"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var pause = flag.String("pause", "", "shell command that stops the broker behind kcoord, says so, and lets it go on after a while")

// TestLateRecords ends transactions while records of them are on their way to a broker that stands still: whichever it takes first,
// they must not open a transaction that nobody ends. Some clients wait for what becomes of the records, some have hung up.
func TestLateRecords(t *testing.T) {
	if *kcoord == "" || *pause == "" {
		t.Skip("needs -kcoord and -pause")
	}
	l := &lateRecords{t: t, at: &target{addr: *kcoord, ids: map[string][16]byte{}}, topic: fmt.Sprintf("late-%x", time.Now().UnixNano())}
	if err := l.at.makeLog(l.topic); err != nil {
		t.Fatal(err)
	}
	defer l.at.dropLog(l.topic)
	for i := range *count {
		id := fmt.Sprint(l.topic, i)
		p := l.begin(id)
		l.end(id, p, i%2 == 0)
		open(l.ask(producersOf(l.topic), 0), func(_ int32, q producer) {
			if q.id == p.id {
				t.Errorf("the transaction of %s hangs", id)
			}
		})
	}
}

type lateRecords struct {
	t     *testing.T
	at    *target
	topic string
}

func (l *lateRecords) ask(req kmsg.Request, version int16) kmsg.Response {
	req.SetVersion(version)
	resp, err := askOnce(l.at.addr, req)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp
}

// begin has a transaction with partition 0 in it.
func (l *lateRecords) begin(id string) producer {
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = &id, 60_000
	var p *kmsg.InitProducerIDResponse
	await(l.t, "no producer id", func() bool {
		p = l.ask(init, 2).(*kmsg.InitProducerIDResponse)
		return p.ErrorCode == 0
	})
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, p.ProducerID, p.ProducerEpoch
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: l.topic, Partitions: []int32{0}}}
	l.ask(add, 3)
	return producer{p.ProducerID, p.ProducerEpoch}
}

// end sends records and, while the broker stands still, the end of their transaction, and waits until that is complete.
func (l *lateRecords) end(id string, p producer, patient bool) {
	still := exec.Command("bash", "-c", *pause)
	out, err := still.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := still.Start(); err != nil {
		l.t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		l.t.Fatal(err)
	}
	nc, err := net.Dial("tcp", l.at.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.TransactionID, r.Acks, r.TimeoutMillis = 9, &id, -1, 5000
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: l.topic, Partitions: []kmsg.ProduceRequestTopicPartition{
		{Records: batch{producer: p, at: time.Now(), transactional: true, values: []string{"late"}}.encode()},
	}}}
	if _, err := nc.Write(encode(r, 1, nil)); err != nil {
		l.t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // it has been let through
	if !patient {
		nc.Close()
	}
	e := kmsg.NewPtrEndTxnRequest()
	e.TransactionalID, e.ProducerID, e.ProducerEpoch = id, p.id, p.epoch
	var ended sync.WaitGroup
	ended.Go(func() { l.ask(e, 3) })
	if err := still.Wait(); err != nil {
		l.t.Fatal(err)
	}
	ended.Wait()
	d := kmsg.NewPtrDescribeTransactionsRequest()
	d.TransactionalIDs = []string{id}
	await(l.t, "it does not become complete", func() bool {
		return strings.HasPrefix(l.ask(d, 0).(*kmsg.DescribeTransactionsResponse).TransactionStates[0].State, "Complete")
	})
	nc.Close()
}
