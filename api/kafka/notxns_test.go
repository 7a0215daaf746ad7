package kafka

import (
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// noTransactions is a coordinator that cannot be asked about transactions now.
type noTransactions struct{}

func (noTransactions) Txn(_ txn.Request, reply func(txn.Response, error)) {
	reply(nil, coordinator.ErrLoading)
}

func (noTransactions) ProduceInTxn(_ txn.Request, _ txn.Producer, reply func(txn.Response, func(), error)) {
	reply(nil, func() {}, coordinator.ErrLoading)
}

func (noTransactions) EachTxn(_ txn.Request, reply func([]txn.Response, error)) {
	reply(nil, coordinator.ErrLoading)
}

func (noTransactions) CommitInTxn(_ coordinator.TxnCommit, reply func(group.TxnCommitted, error)) {
	reply(group.TxnCommitted{}, coordinator.ErrLoading)
}

func (noTransactions) Marker(_ int32, _ group.Marker, reply func(group.Response, error)) {
	reply(nil, coordinator.ErrLoading)
}
