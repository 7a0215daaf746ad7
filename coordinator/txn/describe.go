package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (m *Machine) describe(e *entry) Response {
	t := m.hard.Txn(e.id)
	if t == nil {
		return describeError(e.id, transactionalIDNotFound)
	}
	resp := describeError(e.id, none)
	resp.State = t.Status.String()
	resp.ProducerID, resp.ProducerEpoch = int64(t.Producer.ID), int16(t.Producer.Epoch)
	resp.TimeoutMillis = int32(t.Timeout.Milliseconds())
	resp.StartTimestamp = -1
	if !t.Started.IsZero() {
		resp.StartTimestamp = t.Started.UnixMilli()
	}
	for _, topic := range t.Topics {
		d := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		d.Topic, d.Partitions = topic.Name, slices.Clone(topic.Partitions)
		resp.Topics = append(resp.Topics, d)
	}
	return resp
}

func describeError(id string, code int16) *kmsg.DescribeTransactionsResponseTransactionState {
	resp := kmsg.NewDescribeTransactionsResponseTransactionState()
	resp.TransactionalID, resp.ErrorCode = id, code
	return &resp
}
