package metadataversion

import "math/bits"

// Fields is a set of what a record can lose. It is a number so that judging a record allocates nothing.
type Fields uint32

// The fields that versions differ in, and what is lost beyond single fields.
const (
	LeaderEpoch Fields = 1 << iota
	ExpireTimestamp
	TopicID
	StateTimestamp
	InstanceID
	RebalanceTimeout
	PreviousProducerID
	NextProducerID
	NextProducerEpoch
	ClientTransactionVersion
	MetadataHash
	AssignmentTimestamp
	AssignmentEpochs
	DescriptionEpochs
	UnknownTags // tagged fields that kcoord does not know either
	WholeRecord // the target does not know the record's type
	Damaged     // no reader reads the record, so that it goes as a whole

	allFields Fields = 1<<iota - 1
)

var fieldNames = [...]string{
	"leaderEpoch", "expireTimestamp", "topicId", "currentStateTimestamp", "groupInstanceId", "rebalanceTimeout",
	"previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion", "metadataHash",
	"assignmentTimestamp", "assignmentEpochs", "descriptionTopologyEpochs", "unknown tagged fields", "whole record", "damaged record",
}

// Names are the names of the set's members; fields' are Kafka's.
func (f Fields) Names() []string {
	var names []string
	for one := range f.each {
		names = append(names, one.name())
	}
	return names
}

func (f Fields) name() string { return fieldNames[bits.TrailingZeros32(uint32(f))] }

// each iterates over the members.
func (f Fields) each(yield func(Fields) bool) {
	for f &= allFields; f != 0; f &= f - 1 {
		if !yield(f & -f) {
			return
		}
	}
}
