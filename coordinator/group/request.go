package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Request is one request to the group shard that holds its group: one of the
// types below. Kafka's messages are data here, in the shape of their newest
// version: api/kafka fills in what older versions lack, keeps what they must not
// see from the responses, and translates codes that older versions do not know.
type Request interface {
	// Entity is the id of the group, "" for requests about all groups of a shard.
	Entity() (id string, one bool)
}

// Response is what a Request's comment names.
type Response any

// Client says who sent a request.
type Client struct {
	ID   string // client.id of the request header
	Host string // as Kafka shows it: "/127.0.0.1"
}

// Join is answered by a *kmsg.JoinGroupResponse, when the join phase ends.
type Join struct {
	Client
	*kmsg.JoinGroupRequest
	// MemberIDRequired: a new dynamic member is told its id first (v4, KIP-394).
	MemberIDRequired bool
	// SkipsAssignment: a static leader that returns is told to skip the assignment (v9, KIP-814).
	SkipsAssignment bool
}

// Sync is answered by a *kmsg.SyncGroupResponse, when the leader has assigned.
type Sync struct{ *kmsg.SyncGroupRequest }

// Heartbeat is answered by a *kmsg.HeartbeatResponse.
type Heartbeat struct{ *kmsg.HeartbeatRequest }

// Leave is answered by a *kmsg.LeaveGroupResponse with one entry a member, in
// order (v3, KIP-345; api/kafka turns that of older versions into the top-level code).
type Leave struct{ *kmsg.LeaveGroupRequest }

// Commit is answered by a *kmsg.OffsetCommitResponse. Topics that don't exist have been
// taken out by api/kafka; the names and ids of the others are both filled in. A
// group that does not exist is GROUP_ID_NOT_FOUND, which api/kafka makes
// ILLEGAL_GENERATION for versions before 9. Metadata is the caller's again after the reply:
// what is kept of it is copied.
type Commit struct{ *kmsg.OffsetCommitRequest }

// Fetch is answered by a *kmsg.OffsetFetchResponseGroup. Topics nil: all.
// Topics have their names filled in.
type Fetch struct {
	*kmsg.OffsetFetchRequestGroup
	RequireStable bool         // partitions with pending offsets are UNSTABLE_OFFSET_COMMIT (v7, KIP-447)
	Memory        *FetchMemory // where the answer is to lie; nil: in memory of its own
}

// DeleteOffsets is answered by a *kmsg.OffsetDeleteResponse.
type DeleteOffsets struct{ *kmsg.OffsetDeleteRequest }

// Describe is answered by a *kmsg.DescribeGroupsResponseGroup: of a group that does not
// exist, state Dead and GROUP_ID_NOT_FOUND (v6, KIP-1043; api/kafka makes it NONE for older ones).
type Describe struct{ Group string }

// List is answered by a []kmsg.ListGroupsResponseGroup, by group id. Empty filters let all pass.
type List struct{ States, Types []string }

// Delete is answered by a *kmsg.DeleteGroupsResponseGroup.
type Delete struct{ Group string }

// ForgetTopics tells that topics were deleted: a group's offsets of them are
// deleted. It is answered by a ForgottenTopics.
type ForgetTopics struct {
	Group string
	// By name: the id of the topic that has it now, whose offsets stay; zero: there is none.
	Topics map[string][16]byte
}

// ForgottenTopics is how many offsets were deleted.
type ForgottenTopics struct{ Offsets int }

// IDs asks for the ids of all groups of the shard, in memory or not. It is
// answered by a []string, sorted.
type IDs struct{}

// Quarantined asks for the groups in quarantine. It is answered by a []Quarantine.
type Quarantined struct{}

// Quarantine is a group that has records which cannot be read.
type Quarantine struct {
	Group    string
	Problems []Problem
}

// Problem is one unreadable record, in its stored bytes.
type Problem struct {
	Key, Value []byte
	Err        error
}

func (r Join) Entity() (string, bool)          { return r.Group, true }
func (r Sync) Entity() (string, bool)          { return r.Group, true }
func (r Heartbeat) Entity() (string, bool)     { return r.Group, true }
func (r Leave) Entity() (string, bool)         { return r.Group, true }
func (r Commit) Entity() (string, bool)        { return r.Group, true }
func (r Fetch) Entity() (string, bool)         { return r.Group, true }
func (r DeleteOffsets) Entity() (string, bool) { return r.Group, true }
func (r Describe) Entity() (string, bool)      { return r.Group, true }
func (r Delete) Entity() (string, bool)        { return r.Group, true }
func (r List) Entity() (string, bool)          { return "", false }
func (r ForgetTopics) Entity() (string, bool)  { return r.Group, true }
func (r IDs) Entity() (string, bool)           { return "", false }
func (r Quarantined) Entity() (string, bool)   { return "", false }

// Config is what the group coordinator is told by Kafka's own keys, with Kafka's defaults.
type Config struct {
	MinSessionTimeout      time.Duration // group.min.session.timeout.ms
	MaxSessionTimeout      time.Duration // group.max.session.timeout.ms
	InitialRebalanceDelay  time.Duration // group.initial.rebalance.delay.ms
	MaxSize                int           // group.max.size
	MetadataMaxChars       int           // offset.metadata.max.bytes: UTF-16 units of a commit's metadata
	Retention              time.Duration // offsets.retention.minutes
	RetentionCheckInterval time.Duration // offsets.retention.check.interval.ms

	// LegacyTxnCommit is not Kafka's: what becomes of transactional commits that
	// name no member (transaction.offset.commit.legacy), and in which groups something else does.
	LegacyTxnCommit   LegacyPolicy
	LegacyTxnCommitOf map[string]LegacyPolicy

	// ResidentOffsets is not Kafka's: about how many offsets a shard keeps in memory of
	// groups that nobody is in; 0: a default.
	ResidentOffsets int
}

// NewMemberJoinTimeout bounds how long a new member's JoinGroup is kept while it sends no heartbeats.
const NewMemberJoinTimeout = 5 * time.Minute
