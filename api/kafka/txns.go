package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// APIs for which codes differ by version (txn.CodeFor).
const (
	apiProduce            = 0
	apiInitProducerID     = 22
	apiAddPartitionsToTxn = 24
	apiAddOffsetsToTxn    = 25
	apiEndTxn             = 26
	apiTxnOffsetCommit    = 28
)

// errStale ends a connection whose producer has gone on with a newer one.
var errStale = errors.New("a control request on an older connection than its producer's latest (transaction.stale.connection.fencing)")

// askTxn hands a request to the shard of its transactional id.
func (k *call) askTxn(req txn.Request, shape func(*call, group.Response, error) kmsg.Response) {
	k.answer = shape
	k.c.srv.o.Transactions.Txn(req, k.completeTxn)
}

// completeTxn takes a shard's reply. What came too late is not answered: who sent it has
// given this connection up, and whoever still reads it shall not think that it went well.
func (k *call) completeTxn(resp txn.Response, err error) {
	if s, is := resp.(txn.Stale); is && err == nil {
		c := k.c
		c.srv.m.staleRequests.Inc()
		c.srv.o.Log.Warn().Str("client", c.remote).Str("request", apiName(k.api.key)).
			Str("newerClientId", s.Client.ID).Str("newerClient", s.Client.Host).Msg("a request on an older connection than its producer's latest was refused: it came late, or somebody else ends the transaction, and will come again")
		c.close(errStale)
		return
	}
	k.complete(resp, err)
}

// client says whom a transactional request is of.
func (c *conn) client() txn.Client {
	return txn.Client{ID: c.clientID, Host: c.host, Conn: c.number}
}

// txnCode is the code of a transaction's answer in the call's version.
func (k *call) txnCode(code int16) int16 {
	code = txn.CodeFor(k.api.key, k.version, code)
	k.failed(code)
	return code
}

// peekInitProducerID passes on what idempotent producers send: no transactional id. One that
// names a producer id without an epoch, or the other way round, is refused here, since not
// every broker does.
func peekInitProducerID(version int16, body []byte) (verdict, bool) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = version
	if err := req.ReadFrom(body); err != nil {
		return 0, false
	}
	if req.TransactionalID == nil && (req.ProducerID == -1) == (req.ProducerEpoch == -1) {
		return passOn, true
	}
	return answerHere, true
}

// initProducerID, with a transactional id; by version:
//
//	3   the producer's id and epoch, to go on with (KIP-360); before: none
//	4   PRODUCER_FENCED; before: INVALID_PRODUCER_EPOCH
func (k *call) initProducerID(body []byte) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	if req.TransactionalID == nil {
		out := kmsg.NewPtrInitProducerIDResponse()
		out.ErrorCode, out.ProducerID, out.ProducerEpoch = codeInvalidRequest, -1, -1
		k.failed(out.ErrorCode)
		k.done(out)
		return nil
	}
	k.askTxn(txn.Init{Client: k.c.client(), InitProducerIDRequest: req}, func(k *call, resp group.Response, err error) kmsg.Response {
		out, ok := resp.(*kmsg.InitProducerIDResponse)
		if err != nil || !ok {
			out = kmsg.NewPtrInitProducerIDResponse()
			out.ErrorCode, out.ProducerID, out.ProducerEpoch = code(err), -1, -1
		}
		out.ErrorCode = k.txnCode(out.ErrorCode)
		return out
	})
	return nil
}

// addOffsetsToTxn: PRODUCER_FENCED from version 2 on; before: INVALID_PRODUCER_EPOCH.
func (k *call) addOffsetsToTxn(body []byte) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	k.askTxn(txn.AddOffsets{Client: k.c.client(), AddOffsetsToTxnRequest: req}, func(k *call, resp group.Response, err error) kmsg.Response {
		out, ok := resp.(*kmsg.AddOffsetsToTxnResponse)
		if err != nil || !ok {
			out = kmsg.NewPtrAddOffsetsToTxnResponse()
			out.ErrorCode = code(err)
		}
		out.ErrorCode = k.txnCode(out.ErrorCode)
		return out
	})
	return nil
}

// endTxn, by version:
//
//	2   PRODUCER_FENCED; before: INVALID_PRODUCER_EPOCH
//	5   transaction version 2: the answer has the producer's next epoch (KIP-890)
func (k *call) endTxn(body []byte) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	end := txn.End{Client: k.c.client(), EndTxnRequest: req, TransactionVersion: 1}
	if k.version >= 5 {
		end.TransactionVersion = 2
	}
	k.askTxn(end, func(k *call, resp group.Response, err error) kmsg.Response {
		out, ok := resp.(*kmsg.EndTxnResponse)
		if err != nil || !ok {
			out = kmsg.NewPtrEndTxnResponse()
			out.ErrorCode, out.ProducerID, out.ProducerEpoch = code(err), -1, -1
		}
		out.ErrorCode = k.txnCode(out.ErrorCode)
		return out
	})
	return nil
}
