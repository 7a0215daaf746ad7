package group

// Kafka's error codes, as far as this package answers with them.
const (
	none                        int16 = 0
	unknownServerError          int16 = -1
	offsetMetadataTooLarge      int16 = 12
	coordinatorLoadInProgress   int16 = 14
	illegalGeneration           int16 = 22
	inconsistentGroupProtocol   int16 = 23
	invalidGroupID              int16 = 24
	unknownMemberID             int16 = 25
	invalidSessionTimeout       int16 = 26
	rebalanceInProgress         int16 = 27
	unsupportedForMessageFormat int16 = 43
	invalidProducerEpoch        int16 = 47
	nonEmptyGroup               int16 = 68
	groupIDNotFound             int16 = 69
	memberIDRequired            int16 = 79
	groupMaxSizeReached         int16 = 81
	fencedInstanceID            int16 = 82
	groupSubscribedToTopic      int16 = 86
	unstableOffsetCommit        int16 = 88
)
