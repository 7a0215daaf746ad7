package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// describeTransactions asks each transactional id's shard.
func (k *call) describeTransactions(body []byte) error {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	reqs := make([]txn.Request, len(req.TransactionalIDs))
	for i, id := range req.TransactionalIDs {
		reqs[i] = txn.Describe{TransactionalID: id}
	}
	k.askAllTxns(reqs, func(k *call, _ group.Response, err error) kmsg.Response {
		out := kmsg.NewPtrDescribeTransactionsResponse()
		for i, id := range req.TransactionalIDs {
			t := kmsg.NewDescribeTransactionsResponseTransactionState()
			if p := k.partOr(i, err); p.err != nil {
				t.TransactionalID, t.ErrorCode = id, code(p.err)
			} else {
				t = *p.resp.(*kmsg.DescribeTransactionsResponseTransactionState)
			}
			k.failed(t.ErrorCode)
			out.TransactionStates = append(out.TransactionStates, t)
		}
		return out
	})
	return nil
}

// askAllTxns is askAll for transactional ids.
func (k *call) askAllTxns(reqs []txn.Request, shape func(*call, group.Response, error) kmsg.Response) {
	k.answer = shape
	k.parts, k.missing = make([]part, len(reqs)), len(reqs)
	if len(reqs) == 0 {
		k.complete(nil, nil)
	}
	for i, req := range reqs {
		k.c.srv.o.Transactions.Txn(req, func(resp txn.Response, err error) { k.completePart(i, resp, err) })
	}
}

// listTransactions asks every shard. By version: 1 filters by duration, 2 by a pattern
// of ids (KIP-1152); what an older one does not have, lets all pass.
func (k *call) listTransactions(body []byte) error {
	req := kmsg.NewPtrListTransactionsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	list := txn.List{States: req.StateFilters, ProducerIDs: req.ProducerIDFilters, LongerThan: -1}
	if k.version >= 1 && req.DurationFilterMillis >= 0 {
		list.LongerThan = time.Duration(min(req.DurationFilterMillis, int64(forever/time.Millisecond))) * time.Millisecond
	}
	if k.version >= 2 {
		var bad int16
		if list.Pattern, bad = txn.Pattern(req.TransactionalIDPattern); bad != 0 {
			resp := kmsg.NewPtrListTransactionsResponse()
			resp.ErrorCode = bad
			k.failed(bad)
			k.done(resp)
			return nil
		}
	}
	k.answer = shapeTxnList
	k.c.srv.o.Transactions.EachTxn(list, func(resps []txn.Response, err error) { k.complete(resps, err) })
	return nil
}

// forever is about the longest duration there is.
const forever = time.Duration(1<<63 - 1)

func shapeTxnList(k *call, resp group.Response, err error) kmsg.Response {
	out := kmsg.NewPtrListTransactionsResponse()
	out.ErrorCode = code(err)
	k.failed(out.ErrorCode)
	if err != nil {
		return out
	}
	for i, r := range resp.([]txn.Response) {
		l := r.(*kmsg.ListTransactionsResponse)
		out.TransactionStates = append(out.TransactionStates, l.TransactionStates...)
		if i == 0 { // each shard tells the same
			out.UnknownStateFilters = slices.Clone(l.UnknownStateFilters)
		}
	}
	return out
}
