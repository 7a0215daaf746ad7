package coordinator

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/storage/memlog"
)

// setOut has a producer's records set out for partition t-0, which its transaction then has.
func setOut(n *Node, id string, p *kmsg.InitProducerIDResponse) (code int16, arrived func()) {
	who := txn.Producer{ID: txn.ProducerID(p.ProducerID), Epoch: txn.Epoch(p.ProducerEpoch)}
	req := txn.AddImplicit{TransactionalID: id, Producer: who, Topics: []txn.Topic{{Name: "t", Partitions: []int32{0}}}}
	type answer struct {
		code    int16
		arrived func()
	}
	ch := make(chan answer, 1)
	n.ProduceInTxn(req, who, func(resp txn.Response, arrived func(), err error) {
		if err != nil {
			ch <- answer{-1, arrived}
			return
		}
		ch <- answer{resp.(txn.Result).Code, arrived}
	})
	a := <-ch
	return a.code, a.arrived
}

func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.markers)
}

// Records that came to a broker behind the marker of their own epoch would open a transaction that nobody ends.
func TestMarkersWaitForRecordsOnTheirWay(t *testing.T) {
	for _, version := range []int16{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b, c := memlog.New(Index), &cluster{}
			n := openTxns(t, b, c)
			defer func() { n.Close(); b.Close() }()
			p, _ := initialise(n, "x")
			code, arrived := setOut(n, "x", p)
			if code != 0 {
				t.Fatal(code)
			}
			req := kmsg.NewPtrEndTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch = "x", p.ProducerID, p.ProducerEpoch
			if r, _ := txnAsk[*kmsg.EndTxnResponse](n, txn.End{EndTxnRequest: req, TransactionVersion: version}); r.ErrorCode != 0 {
				t.Fatalf("%+v", r)
			}
			time.Sleep(time.Minute) // of the bubble's clock
			// With version 2 the marker's epoch is the next: by itself it keeps out what comes late.
			if got := len(c.written()); got != int(version-1) {
				t.Errorf("version %d: %d markers while records are on their way", version, got)
			}
			late, never := setOut(n, "x", p) // which finds the transaction decided, or the producer gone on
			if never(); late == 0 {
				t.Error("more records set out")
			}
			arrived()
			time.Sleep(time.Minute)
			if got := c.written(); len(got) != 1 {
				t.Errorf("version %d: %q", version, got)
			}
			if len(n.records.between) != 0 {
				t.Error("something is remembered")
			}
		})
	}
}

// Records that come before the last transaction's marker wait for that transaction, whose marker must not
// wait for them.
func TestRecordsAndMarkersDontWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := memlog.New(Index), &cluster{}
		n := openTxns(t, b, c)
		defer func() { n.Close(); b.Close() }()
		p, _ := initialise(n, "x")
		_, arrived := setOut(n, "x", p)
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = "x", p.ProducerID, p.ProducerEpoch
		txnAsk[*kmsg.EndTxnResponse](n, txn.End{EndTxnRequest: req, TransactionVersion: 1})
		time.AfterFunc(patience/2, arrived)
		began := time.Now()
		if code, next := setOut(n, "x", p); code != 0 || time.Since(began) >= patience {
			t.Errorf("the next records: %d after %s", code, time.Since(began))
		} else {
			next()
		}
		if got := c.written(); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
}
