package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// turns keep what a producer sends behind records that it was told to send again from getting in before
// them. A broker that knows nothing of a producer yet takes whatever sequence number comes first, and would refuse
// the earlier ones for ever after. Kafka's partitions remember the same where they verify (its
// VerificationStateEntry). What is sent without waiting for an answer is sent over one connection: so each has its own.
type turns map[turn]first

// turn is a partition. Of the producers that write to it over one connection the latest counts, so that what is kept
// is bounded.
type turn struct {
	topic     string
	partition int32
}

// first is what has to come first.
type first struct {
	producer txn.Producer
	sequence int32
}

// take is the verdict on a partition's records, of which the transaction's is why.
func (t *turns) take(topic string, at *kmsg.ProduceRequestTopicPartition, producer txn.Producer, why int16) int16 {
	here, sequence := turn{topic, at.Partition}, sequenceOf(at.Records)
	awaited, some := (*t)[here]
	some = some && awaited.producer == producer
	switch {
	case why != 0 && !comesAgain(why), some && why != 0 && sequence >= awaited.sequence:
		return why
	case why != 0:
		if *t == nil {
			*t = turns{}
		}
		(*t)[here] = first{producer, sequence}
		return why
	case some && sequence > awaited.sequence:
		return kerr.OutOfOrderSequenceNumber.Code
	}
	delete(*t, here)
	return 0
}

// comesAgain says whether records that are refused so are sent again.
func comesAgain(code int16) bool {
	switch code {
	case kerr.ConcurrentTransactions.Code, codeLoading, codeNotAvailable, codeNotCoordinator:
		return true
	}
	return false
}

// sequenceOf is the number of the first of a producer's records (producerOf).
func sequenceOf(records []byte) int32 {
	const at, end = 53, 57
	if len(records) < end {
		return 0
	}
	return int32(binary.BigEndian.Uint32(records[at:]))
}
