package txn

// Kafka's error codes, as far as this package answers with them. They are those of
// the newest versions; CodeFor has the older ones.
const (
	none                      int16 = 0
	coordinatorLoadInProgress int16 = 14
	coordinatorNotAvailable   int16 = 15
	notCoordinator            int16 = 16
	notEnoughReplicas         int16 = 19
	invalidRequest            int16 = 42
	invalidProducerEpoch      int16 = 47
	invalidTxnState           int16 = 48
	invalidProducerIDMapping  int16 = 49
	invalidTransactionTimeout int16 = 50
	concurrentTransactions    int16 = 51
	producerFenced            int16 = 90
	transactionalIDNotFound   int16 = 105
	transactionAbortable      int16 = 120
	invalidRegularExpression  int16 = 128
)

// The APIs for which codes differ by version.
const (
	apiProduce            int16 = 0
	apiInitProducerID     int16 = 22
	apiAddPartitionsToTxn int16 = 24
	apiAddOffsetsToTxn    int16 = 25
	apiEndTxn             int16 = 26
	apiTxnOffsetCommit    int16 = 28
)

// CodeFor is the code that a version of an API has for one of this package's.
//
//	code                          API                                           version  becomes
//	PRODUCER_FENCED               InitProducerId                                < 4      INVALID_PRODUCER_EPOCH
//	                              AddPartitionsToTxn, AddOffsetsToTxn, EndTxn   < 2      INVALID_PRODUCER_EPOCH
//	                              Produce, TxnOffsetCommit                      all      INVALID_PRODUCER_EPOCH
//	TRANSACTION_ABORTABLE         Produce                                       < 11     INVALID_TXN_STATE
//	                              TxnOffsetCommit                               < 4      INVALID_TXN_STATE
//	CONCURRENT_TRANSACTIONS       Produce                                       < 12     NOT_ENOUGH_REPLICAS
//	COORDINATOR_LOAD_IN_PROGRESS  Produce                                       all      NOT_ENOUGH_REPLICAS
//	  (and its siblings)          TxnOffsetCommit                               < 2      COORDINATOR_NOT_AVAILABLE
//
// Produce and TxnOffsetCommit are what Kafka makes of the answers to the adding
// (AddImplicit) or verifying (VerifyOffsets) that comes before them.
func CodeFor(api, version, code int16) int16 {
	switch code {
	case producerFenced:
		return fencedFor(api, version)
	case transactionAbortable:
		if api == apiProduce && version < 11 || api == apiTxnOffsetCommit && version < 4 {
			return invalidTxnState
		}
	case concurrentTransactions:
		if api == apiProduce && version < 12 {
			return notEnoughReplicas
		}
	case coordinatorLoadInProgress, coordinatorNotAvailable, notCoordinator:
		switch {
		case api == apiProduce:
			return notEnoughReplicas
		case api == apiTxnOffsetCommit && version < 2 && code == coordinatorLoadInProgress:
			return coordinatorNotAvailable
		}
	}
	return code
}

func fencedFor(api, version int16) int16 {
	old := false
	switch api {
	case apiInitProducerID:
		old = version < 4
	case apiAddPartitionsToTxn, apiAddOffsetsToTxn, apiEndTxn:
		old = version < 2
	case apiProduce, apiTxnOffsetCommit:
		old = true
	}
	if old {
		return invalidProducerEpoch
	}
	return producerFenced
}
