package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The coordinator of transactions is here, and has none so far. Until it has, a
// transactional producer is told at its start that it cannot work, and the
// broker's own coordinator is left out of it.

// peekInitProducerID passes on what idempotent producers send: no transactional id.
func peekInitProducerID(version int16, body []byte) (verdict, bool) {
	var null bool
	if version >= 2 {
		if len(body) < 1 {
			return 0, false
		}
		null = body[0] == 0
	} else {
		if len(body) < 2 {
			return 0, false
		}
		null = int16(binary.BigEndian.Uint16(body)) < 0
	}
	if null {
		return passOn, true
	}
	return answerHere, true
}

func (k *call) initTransactionalID(body []byte) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = codeUnsupportedVersion, -1, -1
	k.failed(resp.ErrorCode)
	k.done(resp)
	return nil
}

func (k *call) describeTransactions(body []byte) error {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	for _, id := range req.TransactionalIDs {
		t := kmsg.NewDescribeTransactionsResponseTransactionState()
		t.TransactionalID, t.ErrorCode = id, codeNoSuchTransaction
		resp.TransactionStates = append(resp.TransactionStates, t)
	}
	k.done(resp)
	return nil
}

// txnStates are the names that a filter may have; others are told back.
var txnStates = map[string]bool{
	"Empty": true, "Ongoing": true, "PrepareCommit": true, "PrepareAbort": true,
	"CompleteCommit": true, "CompleteAbort": true, "Dead": true, "PrepareEpochFence": true,
}

func (k *call) listTransactions(body []byte) error {
	req := kmsg.NewPtrListTransactionsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	resp := kmsg.NewPtrListTransactionsResponse()
	for _, s := range req.StateFilters {
		if !txnStates[s] {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, s)
		}
	}
	k.done(resp)
	return nil
}
