package kafka

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// api is a line of the dispatch table.
type api struct {
	key      int16
	min, max int16 // as Kafka 4.4.0 announces them
	flexible int16 // the first version whose header has tags

	// handle answers here: it decodes and normalises the request, asks the
	// coordinator and says how the answer is shaped. An error ends the connection.
	handle func(*call, []byte) error
	// pipelined: the next request of the connection does not wait for the answer.
	pipelined bool
	// parks: the answer may be long in coming, and is not waited for at the end.
	parks bool
	// peek looks into the start of a request that is passed on, and says what is to
	// become of it. nil: passed on, and it has a response.
	peek func(version int16, body []byte) (verdict, bool)
	// whole: peek is shown all of the request at once.
	whole bool
	// topics: it may have changed the broker's topics when it is answered.
	topics bool
	// deletes: topics may be gone then.
	deletes bool
	// optional: not every broker has it, so it is announced after the broker only.
	optional bool
}

// verdict is what becomes of a request of the broker's.
type verdict int8

const (
	passOn              verdict = iota
	passOnSilent                // it has no response
	answerHere                  // by handle
	transactional               // it is part of a transaction, whose coordinator is here
	transactionalSilent         // that, and it has no response
)

// kafkas makes Kafka's names of APIs of those that kmsg has.
var kafkas = strings.NewReplacer("ACLs", "Acls", "SASL", "Sasl", "SCRAM", "Scram", "ProducerID", "ProducerId", "PartitionAssignments", "PartitionReassignments")

// apiName is an API's name in Kafka's metrics and documentation.
func apiName(key int16) string { return kafkas.Replace(kmsg.NameForKey(key)) }

// served is the dispatch table: every API that is served. What is missing is not announced, and a
// request for it ends its connection, as an unknown one does in Kafka:
//
//   - the consumer, share and streams groups' APIs (68, 69, 76–79, 83–93): groups
//     live here, and here they are classic ones so far;
//   - what only brokers and controllers send to each other.
//
// Produce is announced up to the last version that leaves the adding of partitions to
// the client, where transaction.version is 1.
func served(transactionVersion int16) []api {
	apis := []api{
		{key: 0, min: 0, max: 13, peek: peekProduce},
		{key: 1, min: 4, max: 18}, // Fetch
		{key: 2, min: 1, max: 11}, // ListOffsets
		{key: 3, min: 0, max: 13}, // Metadata
		{key: 8, min: 2, max: 10, handle: (*call).offsetCommit, pipelined: true},
		{key: 9, min: 1, max: 10, handle: (*call).offsetFetch, pipelined: true},
		{key: 10, min: 0, max: 6, handle: (*call).findCoordinator},
		{key: 11, min: 0, max: 9, handle: (*call).joinGroup, parks: true},
		{key: 12, min: 0, max: 4, handle: (*call).heartbeat, pipelined: true},
		{key: 13, min: 0, max: 5, handle: (*call).leaveGroup},
		{key: 14, min: 0, max: 5, handle: (*call).syncGroup, parks: true},
		{key: 15, min: 0, max: 6, handle: (*call).describeGroups},
		{key: 16, min: 0, max: 5, handle: (*call).listGroups},
		{key: 17, min: 0, max: 1}, // SaslHandshake: the broker says that it is out of place
		{key: 18, min: 0, max: 5, handle: (*call).apiVersions},
		{key: 19, min: 2, max: 7, topics: true},                // CreateTopics
		{key: 20, min: 1, max: 6, topics: true, deletes: true}, // DeleteTopics
		{key: 21, min: 0, max: 2},                              // DeleteRecords
		{key: 22, min: 0, max: 5, peek: peekInitProducerID, whole: true, handle: (*call).initProducerID, pipelined: true},
		{key: 23, min: 2, max: 4}, // OffsetForLeaderEpoch
		{key: 24, min: 0, max: 5, handle: (*call).addPartitionsToTxn},
		{key: 25, min: 0, max: 4, handle: (*call).addOffsetsToTxn},
		{key: 26, min: 0, max: 5, handle: (*call).endTxn},
		{key: 27, min: 1, max: 2, peek: peekMarkers, whole: true, handle: (*call).writeTxnMarkers},
		{key: 28, min: 0, max: 6, handle: (*call).txnOffsetCommit},
		{key: 29, min: 1, max: 3},               // DescribeAcls
		{key: 30, min: 1, max: 3},               // CreateAcls
		{key: 31, min: 1, max: 3},               // DeleteAcls
		{key: 32, min: 1, max: 4},               // DescribeConfigs
		{key: 33, min: 0, max: 2},               // AlterConfigs
		{key: 34, min: 1, max: 2},               // AlterReplicaLogDirs
		{key: 35, min: 1, max: 5},               // DescribeLogDirs
		{key: 36, min: 0, max: 2},               // SaslAuthenticate
		{key: 37, min: 0, max: 3, topics: true}, // CreatePartitions
		{key: 38, min: 1, max: 3},               // CreateDelegationToken
		{key: 39, min: 1, max: 2},               // RenewDelegationToken
		{key: 40, min: 1, max: 2},               // ExpireDelegationToken
		{key: 41, min: 1, max: 3},               // DescribeDelegationToken
		{key: 42, min: 0, max: 3, handle: (*call).deleteGroups},
		{key: 43, min: 0, max: 2}, // ElectLeaders
		{key: 44, min: 0, max: 1}, // IncrementalAlterConfigs
		{key: 45, min: 0, max: 1}, // AlterPartitionReassignments
		{key: 46, min: 0, max: 0}, // ListPartitionReassignments
		{key: 47, min: 0, max: 0, handle: (*call).offsetDelete},
		{key: 48, min: 0, max: 1}, // DescribeClientQuotas
		{key: 49, min: 0, max: 1}, // AlterClientQuotas
		{key: 50, min: 0, max: 0}, // DescribeUserScramCredentials
		{key: 51, min: 0, max: 0}, // AlterUserScramCredentials
		{key: 55, min: 0, max: 2}, // DescribeQuorum
		{key: 57, min: 0, max: 2, handle: (*call).updateFeatures, parks: true},
		{key: 60, min: 0, max: 2}, // DescribeCluster
		{key: 61, min: 0, max: 0}, // DescribeProducers
		{key: 64, min: 0, max: 0}, // UnregisterBroker
		{key: 65, min: 0, max: 0, handle: (*call).describeTransactions},
		{key: 66, min: 0, max: 2, handle: (*call).listTransactions},
		{key: 71, min: 0, max: 0, optional: true}, // GetTelemetrySubscriptions, where the broker has it
		{key: 72, min: 0, max: 0, optional: true}, // PushTelemetry
		{key: 74, min: 0, max: 1},                 // ListConfigResources
		{key: 75, min: 0, max: 0},                 // DescribeTopicPartitions
		{key: 80, min: 0, max: 1},                 // AddRaftVoter
		{key: 81, min: 0, max: 0},                 // RemoveRaftVoter
		{key: 94, min: 0, max: 0},                 // UnregisterController
	}
	if transactionVersion < 2 {
		apis[0].max = addedByClient
	}
	for i := range apis {
		apis[i].flexible = flexibleSince(apis[i].key, apis[i].max)
	}
	return apis
}

// flexibleSince asks kmsg, which generates its types from Kafka's definitions.
func flexibleSince(key, maxVersion int16) int16 {
	req := kmsg.RequestForKey(key)
	if req == nil {
		return 0 // nobody looks into it
	}
	for v := int16(0); v <= maxVersion; v++ {
		req.SetVersion(v)
		if req.IsFlexible() {
			return v
		}
	}
	return maxVersion + 1
}

// own says whether an API is answered here whatever its request holds.
func (a *api) own() bool { return a.handle != nil && a.peek == nil }
