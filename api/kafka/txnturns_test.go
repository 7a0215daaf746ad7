package kafka

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// slow finds the transaction before not complete yet, as often as is said.
type slow struct {
	Transactions
	left atomic.Int32
}

func (s *slow) ProduceInTxn(req txn.Request, p txn.Producer, reply func(txn.Response, func(), error)) {
	if s.left.Add(-1) >= 0 {
		reply(txn.Result{Code: 51}, func() {}, nil) // CONCURRENT_TRANSACTIONS
		return
	}
	s.Transactions.ProduceInTxn(req, p, reply)
}

// numbered gives a batch its sequence number.
func numbered(batch []byte, n int32) []byte {
	batch = slices.Clone(batch)
	binary.BigEndian.PutUint32(batch[53:], uint32(n))
	return batch
}

// What was sent behind records that are to be sent again does not get in before them.
func TestProduceInTurn(t *testing.T) {
	s := withNode(t, towardsKafka)
	node := &slow{Transactions: s.srv.o.Transactions}
	s.srv.o.Transactions = node
	id, c, x := s.topic("t"), s.client(), "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	node.left.Store(2)
	reqs := []*kmsg.ProduceRequest{}
	for _, n := range []int32{3, 0, 2, 3, 0, 2, 0} {
		reqs = append(reqs, produce(&x, numbered(records(p, true), n), to("t", id, 0)))
	}
	var corrs []int32
	for _, r := range reqs {
		corrs = append(corrs, c.send(12, r))
	}
	var codes []int16
	for i, r := range reqs {
		codes = append(codes, recv[*kmsg.ProduceResponse](c, corrs[i], r).Topics[0].Partitions[0].ErrorCode)
	}
	if want := []int16{51, 51, 45, 45, 0, 0, 0}; !slices.Equal(codes, want) {
		t.Errorf("%d, want %d", codes, want)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) != 3 || sequenceOf(b.got[0].Topics[0].Partitions[0].Records) != 0 {
		t.Errorf("the broker got %+v", b.got)
	}
}

// It holds for the partition, and for the producer as it was then.
func TestTurns(t *testing.T) {
	var all turns
	a, b, next := txn.Producer{ID: 1}, txn.Producer{ID: 2}, txn.Producer{ID: 1, Epoch: 1}
	for i, step := range []struct {
		partition int32
		who       txn.Producer
		sequence  int32
		why, want int16
	}{
		{0, a, 4, 120, 120}, {0, a, 5, 0, 0}, // nobody sends that again
		{0, a, 6, 14, 14}, {1, a, 7, 0, 0}, {0, b, 7, 0, 0}, // another's counts now
		{0, a, 6, 51, 51}, {0, a, 7, 0, 45}, {0, a, 7, 120, 120}, {0, next, 7, 0, 0}, {0, a, 7, 0, 0},
	} {
		at := &kmsg.ProduceRequestTopicPartition{Partition: step.partition, Records: numbered(make([]byte, 60), step.sequence)}
		if got := all.take("t", at, step.who, step.why); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// A broker fails on null for records, and writes nothing of the request.
func TestProduceOfNull(t *testing.T) {
	c, id, x, p, b := producing(t)
	req := produce(&x, records(p, true), to("t", id, 0, 1))
	req.Topics[0].Partitions[1].Records = nil
	do[*kmsg.ProduceResponse](c, 12, req)
	if got, _ := b.last(); got == nil || len(got.Topics[0].Partitions) != 2 {
		t.Errorf("the broker got %+v", got)
	}
	if d := describe(c, x); d.State != "Empty" {
		t.Errorf("%+v", d)
	}
}
