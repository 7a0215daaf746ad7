//go:build kafka

package difftest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var storms = flag.Int("storms", 0, "how many storms")

// atOnce is how many requests of a storm are sent together.
const atOnce = 6

// TestStorms has kcoord asked many things about the same transactions at once. What is answered is a matter of timing; what is not is that
// nothing hangs once the transactions have ended.
func TestStorms(t *testing.T) {
	if *kcoord == "" || *storms == 0 {
		t.Skip("needs -kcoord and -storms")
	}
	ids := topics(t, *kcoord)
	producesUpTo = producesAt(t, *kcoord)
	t.Logf("seed %d", *seed)
	for i := range *storms {
		s := newSequence(*seed+uint64(i), 0, [2]string{*kcoord, *kcoord}, [2]map[string][16]byte{ids, ids}, false)
		if err := s.storm(rand.New(rand.NewPCG(*seed+uint64(i), 9))); err != nil {
			t.Errorf("seed %d: %v\n%s", *seed+uint64(i), err, strings.Join(s.log, "\n"))
		}
	}
}

// storm plays rounds of requests to kcoord alone, ends the transactions, and says what hangs.
func (s *sequence) storm(r *rand.Rand) error {
	at := s.targets[1]
	defer at.close()
	if err := at.makeLog(s.topic); err != nil {
		return err
	}
	defer at.dropLog(s.topic)
	for round := range 25 {
		sent := 0
		var ops [atOnce]op
		for i := range ops {
			k := drawKind(r, txnKinds)
			ops[i] = op{k.name, k.version(r), r.IntN(slots), r.Uint64() | 1}
			one := s.sent(i, ops[i], at)
			if silent(one.req) { // nobody can tell when it has arrived
				continue
			}
			s.log = append(s.log, fmt.Sprintf("%d.%d > %s %s", round, i, ops[i], describe(at, one.req, s.prefix)))
			if err := at.sendAll([]outgoing{one}, s.answers[1]); err != nil {
				return err
			}
			sent++
		}
		for range sent {
			a := <-s.answers[1]
			s.take(1, a)
			at.learn(&ops[a.op], a)
			s.log = append(s.log, fmt.Sprintf("%d.%d < %s", round, a.op, at.render(a, s.prefix)))
		}
	}
	return s.hangs()
}

// hangs ends all transactions, and says what stays open of them all the same.
func (s *sequence) hangs() error {
	at := s.targets[1]
	nc, err := net.Dial("tcp", at.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	for i := range txnIDs {
		init := kmsg.NewPtrInitProducerIDRequest()
		id := s.txnID(i)
		init.Version, init.TransactionalID, init.TransactionTimeoutMillis = 4, &id, 60_000
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
			resp, err := roundTrip(nc, init, encode(init, 1, nil))
			if err != nil {
				return err
			}
			code := resp.(*kmsg.InitProducerIDResponse).ErrorCode
			if code == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("InitProducerId of %s: %d", id, code)
			}
		}
	}
	req := producersOf(s.topic)
	resp, err := roundTrip(nc, req, encode(req, 1, nil))
	if err != nil {
		return err
	}
	open(resp, func(partition int32, p producer) {
		err = fmt.Errorf("partition %d: the transaction of %s/%d hangs", partition, at.pid(p.id), p.epoch)
	})
	if err != nil {
		return err
	}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Version, fetch.Group, fetch.RequireStable = 7, s.prefix+"g", true
	fetch.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "dt-a", Partitions: []int32{0, 1, 2, 3}}}
	if resp, err = roundTrip(nc, fetch, encode(fetch, 1, nil)); err != nil {
		return err
	}
	for _, p := range resp.(*kmsg.OffsetFetchResponse).Topics[0].Partitions {
		if p.ErrorCode != 0 {
			return fmt.Errorf("the offset of partition %d: %d", p.Partition, p.ErrorCode)
		}
	}
	return nil
}
