package metadataversion

// The versions, in order; V3_4_IV0 is Kafka's IBP_3_4_IV0.
const (
	V0_8_0 Version = iota + 1
	V0_8_1
	V0_8_2
	V0_9_0
	V0_10_0_IV0
	V0_10_0_IV1
	V0_10_1_IV0
	V0_10_1_IV1
	V0_10_1_IV2
	V0_10_2_IV0
	V0_11_0_IV0
	V0_11_0_IV1
	V0_11_0_IV2
	V1_0_IV0
	V1_1_IV0
	V2_0_IV0
	V2_0_IV1
	V2_1_IV0
	V2_1_IV1
	V2_1_IV2
	V2_2_IV0
	V2_2_IV1
	V2_3_IV0
	V2_3_IV1
	V2_4_IV0
	V2_4_IV1
	V2_5_IV0
	V2_6_IV0
	V2_7_IV0
	V2_7_IV1
	V2_7_IV2
	V2_8_IV0
	V2_8_IV1
	V3_0_IV0
	V3_0_IV1
	V3_1_IV0
	V3_2_IV0
	V3_3_IV0
	V3_3_IV1
	V3_3_IV2
	V3_3_IV3
	V3_4_IV0
	V3_5_IV0
	V3_5_IV1
	V3_5_IV2
	V3_6_IV0
	V3_6_IV1
	V3_6_IV2
	V3_7_IV0
	V3_7_IV1
	V3_7_IV2
	V3_7_IV3
	V3_7_IV4
	V3_8_IV0
	V3_9_IV0
	V4_0_IV0
	V4_0_IV1
	V4_0_IV2
	V4_0_IV3
	V4_1_IV0
	V4_1_IV1
	V4_2_IV0
	V4_2_IV1
	V4_3_IV0
	V4_4_IV0
	V4_4_IV1
	V4_4_IV2
)

// versions is the one table. Levels, names and "metadata changed" are Kafka's; what changes in a record was read from the
// schemas, the writers and the readers of each release (docs/metadata-versions.md tells from where).
//
// Kafka 4.x ties new fields to the release and not to a version: they stand at the release's first version, so that an
// older finalized version keeps them out of the records.
var versions = [...]struct {
	name    string
	level   int16
	changed bool // of KRaft's own metadata
	changes []Change
}{
	V0_8_0: {"0.8.0", -1, true, []Change{
		{Record: OffsetCommit, Kind: NewRecord, Version: 1, Needed: true, Why: "read and written by any later Kafka at this version, although 0.8.2 itself wrote version 0 under key type 0"},
		{Record: GroupMetadata, Kind: NewRecord, Version: 0, Needed: true, Why: "since Kafka 0.9.0 itself"},
	}},
	V0_8_1:      {"0.8.1", -1, true, nil},
	V0_8_2:      {"0.8.2", -1, true, nil},
	V0_9_0:      {"0.9.0", -1, true, nil},
	V0_10_0_IV0: {"0.10.0-IV0", -1, true, nil},
	V0_10_0_IV1: {"0.10.0-IV1", -1, true, nil},
	V0_10_1_IV0: {"0.10.1-IV0", -1, true, []Change{
		{Record: GroupMetadata, Kind: NewVersion, Version: 1, Fields: RebalanceTimeout, Why: "KIP-62"},
	}},
	V0_10_1_IV1: {"0.10.1-IV1", -1, true, nil},
	V0_10_1_IV2: {"0.10.1-IV2", -1, true, nil},
	V0_10_2_IV0: {"0.10.2-IV0", -1, true, nil},
	V0_11_0_IV0: {"0.11.0-IV0", -1, true, []Change{
		{Record: TransactionLog, Kind: NewRecord, Version: 0, Needed: true, Why: "KIP-98"},
	}},
	V0_11_0_IV1: {"0.11.0-IV1", -1, true, nil},
	V0_11_0_IV2: {"0.11.0-IV2", -1, true, nil},
	V1_0_IV0:    {"1.0-IV0", -1, true, nil},
	V1_1_IV0:    {"1.1-IV0", -1, true, nil},
	V2_0_IV0:    {"2.0-IV0", -1, true, nil},
	V2_0_IV1:    {"2.0-IV1", -1, true, nil},
	V2_1_IV0: {"2.1-IV0", -1, true, []Change{
		{Record: OffsetCommit, Kind: NewVersion, Version: 2, Why: "KIP-211: expireTimestamp is gone; a commit that sets one is still written as 1"},
		{Record: GroupMetadata, Kind: NewVersion, Version: 2, Fields: StateTimestamp, Why: "KIP-211"},
	}},
	V2_1_IV1: {"2.1-IV1", -1, true, []Change{
		{Record: OffsetCommit, Kind: NewVersion, Version: 3, Fields: LeaderEpoch, Why: "KIP-320"},
	}},
	V2_1_IV2: {"2.1-IV2", -1, true, nil},
	V2_2_IV0: {"2.2-IV0", -1, true, nil},
	V2_2_IV1: {"2.2-IV1", -1, true, nil},
	V2_3_IV0: {"2.3-IV0", -1, true, []Change{
		{Record: GroupMetadata, Kind: NewVersion, Version: 3, Fields: InstanceID, Why: "KIP-345"},
	}},
	V2_3_IV1: {"2.3-IV1", -1, true, nil},
	V2_4_IV0: {"2.4-IV0", -1, true, nil},
	V2_4_IV1: {"2.4-IV1", -1, true, nil},
	V2_5_IV0: {"2.5-IV0", -1, true, nil},
	V2_6_IV0: {"2.6-IV0", -1, true, nil},
	V2_7_IV0: {"2.7-IV0", -1, true, nil},
	V2_7_IV1: {"2.7-IV1", -1, true, nil},
	V2_7_IV2: {"2.7-IV2", -1, true, nil},
	V2_8_IV0: {"2.8-IV0", -1, true, nil},
	V2_8_IV1: {"2.8-IV1", -1, true, nil},
	V3_0_IV0: {"3.0-IV0", -1, true, nil},
	V3_0_IV1: {"3.0-IV1", 1, true, nil},
	V3_1_IV0: {"3.1-IV0", 2, false, nil},
	V3_2_IV0: {"3.2-IV0", 3, true, nil},
	V3_3_IV0: {"3.3-IV0", 4, false, nil},
	V3_3_IV1: {"3.3-IV1", 5, true, nil},
	V3_3_IV2: {"3.3-IV2", 6, true, nil},
	V3_3_IV3: {"3.3-IV3", 7, true, nil},
	V3_4_IV0: {"3.4-IV0", 8, true, nil},
	V3_5_IV0: {"3.5-IV0", 9, false, []Change{
		{Record: OffsetCommit, Kind: Reads, Version: 4, Why: "KIP-915: flexible, not yet written"},
		{Record: GroupMetadata, Kind: Reads, Version: 4, Why: "KIP-915: flexible, not yet written"},
		{Record: TransactionLog, Kind: Reads, Version: 1, Why: "KIP-915: flexible, not yet written"},
	}},
	V3_5_IV1: {"3.5-IV1", 10, false, nil},
	V3_5_IV2: {"3.5-IV2", 11, true, nil},
	V3_6_IV0: {"3.6-IV0", 12, false, nil},
	V3_6_IV1: {"3.6-IV1", 13, true, nil},
	V3_6_IV2: {"3.6-IV2", 14, true, nil},
	V3_7_IV0: {"3.7-IV0", 15, true, nil},
	V3_7_IV1: {"3.7-IV1", 16, false, nil},
	V3_7_IV2: {"3.7-IV2", 17, true, nil},
	V3_7_IV3: {"3.7-IV3", 18, false, nil},
	V3_7_IV4: {"3.7-IV4", 19, false, nil},
	V3_8_IV0: {"3.8-IV0", 20, false, nil},
	V3_9_IV0: {"3.9-IV0", 21, false, nil},
	V4_0_IV0: {"4.0-IV0", 22, false, []Change{
		{Record: ConsumerGroups, Kind: NewRecord, Feature: GroupVersion, Level: 1, Needed: true, Why: "KIP-848"},
	}},
	V4_0_IV1: {"4.0-IV1", 23, true, nil},
	V4_0_IV2: {"4.0-IV2", 24, false, []Change{
		{Record: TransactionLog, Kind: NewVersion, Version: 1, Feature: TransactionVersion, Level: 2,
			Fields: PreviousProducerID | NextProducerID | ClientTransactionVersion, Needed: true, Why: "KIP-890: without them a transaction under way ends with the wrong producer id or epoch"},
	}},
	V4_0_IV3: {"4.0-IV3", 25, false, nil},
	V4_1_IV0: {"4.1-IV0", 26, false, []Change{
		{Record: OffsetCommit, Kind: NewVersion, Version: 4, Fields: TopicID, Why: "KIP-848: read since 3.5, which ignores the tagged topic id"},
		{Record: TransactionLog, Kind: TaggedField, Version: 1, Fields: NextProducerEpoch, Needed: true, Why: "KIP-939: without it a prepared transaction cannot be taken up"},
		{Record: ConsumerGroups, Kind: TaggedField, Fields: MetadataHash, Why: "computed anew where it is ignored"},
	}},
	V4_1_IV1: {"4.1-IV1", 27, false, nil},
	V4_2_IV0: {"4.2-IV0", 28, false, []Change{
		{Record: ShareGroups, Kind: NewRecord, Feature: ShareVersion, Level: 1, Needed: true, Why: "KIP-932"},
	}},
	V4_2_IV1: {"4.2-IV1", 29, false, []Change{
		{Record: StreamsGroups, Kind: NewRecord, Feature: StreamsVersion, Level: 1, Needed: true, Why: "KIP-1071"},
	}},
	V4_3_IV0: {"4.3-IV0", 30, true, []Change{
		{Record: ConsumerGroups, Kind: TaggedField, Fields: AssignmentTimestamp | AssignmentEpochs, Why: "only delay or relax: without them as before"},
	}},
	V4_4_IV0: {"4.4-IV0", 31, false, []Change{
		{Record: StreamsGroups, Kind: TaggedField, Fields: DescriptionEpochs, Why: "the description is asked for again"},
	}},
	V4_4_IV1: {"4.4-IV1", 32, true, nil},
	V4_4_IV2: {"4.4-IV2", 33, true, nil},
}
