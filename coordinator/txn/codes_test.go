package txn

import "testing"

// TestCodeFor holds the codes of old versions, as Kafka 4.4.0 was seen to give them.
func TestCodeFor(t *testing.T) {
	for _, c := range []struct {
		api, from, to, code, want int16
	}{
		{apiInitProducerID, 0, 3, producerFenced, invalidProducerEpoch},
		{apiInitProducerID, 4, 5, producerFenced, producerFenced},
		{apiAddPartitionsToTxn, 0, 1, producerFenced, invalidProducerEpoch},
		{apiAddPartitionsToTxn, 2, 5, producerFenced, producerFenced},
		{apiAddPartitionsToTxn, 0, 5, concurrentTransactions, concurrentTransactions},
		{apiAddPartitionsToTxn, 4, 5, transactionAbortable, transactionAbortable},
		{apiAddOffsetsToTxn, 0, 1, producerFenced, invalidProducerEpoch},
		{apiAddOffsetsToTxn, 2, 4, producerFenced, producerFenced},
		{apiEndTxn, 0, 1, producerFenced, invalidProducerEpoch},
		{apiEndTxn, 2, 5, producerFenced, producerFenced},
		{apiEndTxn, 0, 5, invalidProducerIDMapping, invalidProducerIDMapping},
		{apiTxnOffsetCommit, 0, 6, producerFenced, invalidProducerEpoch},
		{apiTxnOffsetCommit, 0, 3, transactionAbortable, invalidTxnState},
		{apiTxnOffsetCommit, 4, 6, transactionAbortable, transactionAbortable},
		{apiTxnOffsetCommit, 0, 6, concurrentTransactions, concurrentTransactions},
		{apiTxnOffsetCommit, 0, 1, coordinatorLoadInProgress, coordinatorNotAvailable},
		{apiTxnOffsetCommit, 2, 6, coordinatorLoadInProgress, coordinatorLoadInProgress},
		{apiTxnOffsetCommit, 0, 6, notCoordinator, notCoordinator},
		{apiProduce, 3, 13, producerFenced, invalidProducerEpoch},
		{apiProduce, 3, 11, concurrentTransactions, notEnoughReplicas},
		{apiProduce, 12, 13, concurrentTransactions, concurrentTransactions},
		{apiProduce, 3, 10, transactionAbortable, invalidTxnState},
		{apiProduce, 11, 13, transactionAbortable, transactionAbortable},
		{apiProduce, 3, 13, coordinatorLoadInProgress, notEnoughReplicas},
		{apiProduce, 3, 13, notCoordinator, notEnoughReplicas},
		{apiProduce, 3, 13, coordinatorNotAvailable, notEnoughReplicas},
	} {
		for v := c.from; v <= c.to; v++ {
			if got := CodeFor(c.api, v, c.code); got != c.want {
				t.Errorf("API %d version %d: %d becomes %d, not %d", c.api, v, c.code, got, c.want)
			}
		}
	}
}
