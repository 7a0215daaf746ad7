package metadataversion

import "github.com/kcoord/kcoord/groupmeta"

// RecordVersions says in which versions records are to be written. It is small and comparable: a codec keeps a copy and
// asks it for each record.
type RecordVersions struct {
	Offset         int16 // OffsetCommitValue without expireTimestamp
	OffsetExpiring int16 // with one, whatever else that costs the record
	Group          int16 // GroupMetadataValue
	Transaction    int16 // TransactionLogValue, or None
	ConsumerGroup  int16 // the ConsumerGroup* values, or None
	ShareGroup     int16
	StreamsGroup   int16
	Fields         Fields // that may be set, of those that versions differ in
}

// expiring is the only version of OffsetCommitValue that holds an expireTimestamp.
const expiring = 1

// Writes is what a coordinator writes at a finalized version with features at these levels.
//
// TransactionLogValue follows transaction.version, not the version: 0 at level 0, else 1, as Kafka's
// transactionLogValueVersion says.
func Writes(v Version, l Levels) RecordVersions {
	if !v.Known() {
		v = Latest
	}
	s := &states[v]
	w := RecordVersions{
		Offset: s.writes[OffsetCommit], OffsetExpiring: expiring, Group: s.writes[GroupMetadata],
		Transaction: None, ConsumerGroup: None, ShareGroup: None, StreamsGroup: None,
		Fields: s.fields | ExpireTimestamp,
	}
	if s.writes[TransactionLog] != None {
		w.Transaction = min(l[TransactionVersion], 1)
	}
	if l[GroupVersion] > 0 {
		w.ConsumerGroup = 0
	}
	if l[ShareVersion] > 0 {
		w.ShareGroup = 0
	}
	if l[StreamsVersion] > 0 {
		w.StreamsGroup = 0
	}
	if w.Transaction < 1 {
		w.Fields &^= PreviousProducerID | NextProducerID | NextProducerEpoch | ClientTransactionVersion
	}
	return w
}

// OffsetCommit is the version for a committed offset.
func (w RecordVersions) OffsetCommit(expires bool) int16 {
	if expires {
		return w.OffsetExpiring
	}
	return w.Offset
}

// Has says whether a field may be written.
func (w RecordVersions) Has(f Fields) bool { return w.Fields&f == f }

// Of is the version for a record of a type, or None where none may be written. For offsets without expireTimestamp.
func (w RecordVersions) Of(t groupmeta.Type) int16 {
	switch t {
	case groupmeta.TypeLegacyOffsetCommit:
		return 0
	case groupmeta.TypeOffsetCommit:
		return w.Offset
	case groupmeta.TypeGroupMetadata:
		return w.Group
	}
	switch familyOf(t) {
	case ConsumerGroups:
		return w.ConsumerGroup
	case ShareGroups:
		return w.ShareGroup
	case StreamsGroups:
		return w.StreamsGroup
	}
	return None
}

// familyOf is the kind of group that a record type of the group log belongs to; records for types that kcoord does not
// know.
func familyOf(t groupmeta.Type) Record {
	switch {
	case t == groupmeta.TypeLegacyOffsetCommit || t == groupmeta.TypeOffsetCommit:
		return OffsetCommit
	case t == groupmeta.TypeGroupMetadata:
		return GroupMetadata
	case t >= groupmeta.TypeConsumerGroupMetadata && t <= groupmeta.TypeConsumerGroupCurrentMemberAssignment,
		t == groupmeta.TypeConsumerGroupRegularExpression:
		return ConsumerGroups
	case t >= groupmeta.TypeShareGroupMemberMetadata && t <= groupmeta.TypeShareGroupStatePartitionMetadata:
		return ShareGroups
	case t >= groupmeta.TypeStreamsGroupMetadata && t <= groupmeta.TypeStreamsGroupTopology && t.KeyName() != "":
		return StreamsGroups
	}
	return records
}
