package metadataversion

import (
	"bytes"
	"errors"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
)

// Action is what a downgrade does to a record.
type Action uint8

// Actions.
const (
	Keep    Action = iota // its bytes stay
	Replace               // its value becomes Result.Value
	Delete                // it goes
)

// String is a word for it.
func (a Action) String() string { return [...]string{"keep", "replace", "delete"}[a] }

// Result is what becomes of a record.
type Result struct {
	Action Action
	// Value is the new value, of Replace. It is in the memory after dst's end where that was large enough.
	Value []byte
	// Lost is what the record says today and will not say afterwards.
	Lost Fields
	// Ignored are fields that stay, although the target does not look at them and drops them with its next write.
	Ignored Fields
	// Problem says why a record is Damaged, or cannot be written for the target.
	Problem error
}

// Rewriter turns stored records into what a target reads. It has no state: any number of goroutines may use it.
type Rewriter struct {
	reader Reader
	target Target
}

// NewRewriter is the rewriter for a target.
func NewRewriter(to Target) *Rewriter {
	return &Rewriter{reader: ReaderOf(to.Release), target: to}
}

// Reads says whether a record is there for the target as it is: its release reads it, and the features that its type
// belongs to are on.
func (rw *Rewriter) Reads(log Log, key, value []byte) bool {
	if log == GroupLog {
		if t, err := groupmeta.TypeOfKey(key); err == nil && rw.reader.Knows(t) && !rw.knows(t) {
			return false
		}
	}
	return rw.reader.Read(log, key, value) == Read
}

// knows is the reader's Knows less the types of features that are off. Kafka would keep those and bring the groups back
// with members of long ago when the feature is turned on again.
func (rw *Rewriter) knows(t groupmeta.Type) bool {
	if !rw.reader.Knows(t) {
		return false
	}
	switch familyOf(t) {
	case ConsumerGroups:
		return rw.target.Levels[GroupVersion] > 0
	case ShareGroups:
		return rw.target.Levels[ShareVersion] > 0
	case StreamsGroups:
		return rw.target.Levels[StreamsVersion] > 0
	}
	return true
}

// Rewrite says what becomes of a record and appends its new value, if it gets one, to dst. A nil value is a tombstone.
//
// Delete may have to be physical: where the target does not tolerate types that it does not know, a tombstone for such a
// key is as bad as the record (see [Rewriter.ReadsTombstone]).
func (rw *Rewriter) Rewrite(dst []byte, log Log, key, value []byte) Result {
	if log == TransactionsLog {
		return rw.transaction(dst, key, value)
	}
	t, err := groupmeta.TypeOfKey(key)
	switch {
	case err != nil:
		return gone(Damaged, value, err)
	case t.KeyName() == "" && rw.reader.unknownType[GroupLog] == Skipped:
		return Result{} // skipped and kept by either
	case !rw.knows(t):
		return gone(WholeRecord, value, nil)
	}
	if err := checkKey(t, key); err != nil {
		return gone(Damaged, value, err)
	}
	switch {
	case value == nil:
		return Result{}
	case familyOf(t) == OffsetCommit:
		return rw.offset(dst, t, value)
	case t == groupmeta.TypeGroupMetadata:
		return rw.group(dst, value)
	}
	v, version, err := groupmeta.DecodeValue(t, value)
	if err != nil {
		return gone(Damaged, value, err)
	}
	r := settle(dst, value, v, version, 0, true, 0)
	r.Ignored = tagged(v) &^ rw.reader.fields
	return r
}

// ReadsTombstone says whether a tombstone with this key, as the log will hold it until it is compacted, does no harm.
func (rw *Rewriter) ReadsTombstone(log Log, key []byte) bool {
	o := rw.reader.Read(log, key, nil)
	return o == Read || o == Skipped
}

// checkKey reads all of a key, most of which are of offsets, for which this is done without allocating the struct.
func checkKey(t groupmeta.Type, key []byte) error {
	if t == groupmeta.TypeOffsetCommit {
		var k groupmeta.OffsetCommitKey
		return k.Decode(key)
	}
	_, err := groupmeta.DecodeKey(key)
	return err
}

func (rw *Rewriter) offset(dst []byte, t groupmeta.Type, value []byte) Result {
	v := new(groupmeta.OffsetCommitValue)
	version, err := v.Decode(value)
	if err != nil {
		return gone(Damaged, value, err)
	}
	highest := rw.reader.highest[OffsetCommit]
	if t == groupmeta.TypeLegacyOffsetCommit && rw.reader.frozen {
		highest = 0
	}
	to := recordbin.Nearest(version, highest)
	var lost Fields
	if to < 4 && v.TopicID != (groupmeta.UUID{}) {
		lost |= TopicID
	}
	if to < 4 && v.UnknownTags != "" {
		lost, v.UnknownTags = lost|UnknownTags, ""
	}
	if to < 3 && v.LeaderEpoch != -1 {
		lost |= LeaderEpoch
	}
	if to != expiring && v.ExpireTimestamp != -1 {
		lost |= ExpireTimestamp
	}
	r := settle(dst, value, v, version, to, to >= 4, lost)
	if r.Action != Delete && to >= 4 && v.TopicID != (groupmeta.UUID{}) {
		r.Ignored = TopicID &^ rw.reader.fields
	}
	return r
}

func (rw *Rewriter) group(dst, value []byte) Result {
	v := groupmeta.NewGroupMetadataValue()
	version, err := v.Decode(value)
	if err != nil {
		return gone(Damaged, value, err)
	}
	to := recordbin.Nearest(version, rw.reader.highest[GroupMetadata])
	var lost Fields
	if to < 4 && v.UnknownTags != "" {
		lost, v.UnknownTags = lost|UnknownTags, ""
	}
	if to < 2 && v.CurrentStateTimestamp != -1 {
		lost |= StateTimestamp
	}
	for i := range v.Members {
		m := &v.Members[i]
		if to < 4 && m.UnknownTags != "" {
			lost, m.UnknownTags = lost|UnknownTags, ""
		}
		if to < 3 && m.GroupInstanceID.Valid {
			lost |= InstanceID
		}
		if to < 1 && m.RebalanceTimeout != -1 && m.RebalanceTimeout != m.SessionTimeout { // version 0 means the session's
			lost |= RebalanceTimeout
		}
	}
	return settle(dst, value, v, version, to, to >= 4, lost)
}

// tagged are the fields with a tag that a value has and not all 4.x releases know.
func tagged(v groupmeta.Value) Fields {
	var f Fields
	switch v := v.(type) {
	case *groupmeta.ConsumerGroupMetadataValue:
		f = when(v.MetadataHash != 0, MetadataHash)
	case *groupmeta.ConsumerGroupTargetAssignmentMetadataValue:
		f = when(v.AssignmentTimestamp != 0, AssignmentTimestamp)
	case *groupmeta.ShareGroupTargetAssignmentMetadataValue:
		f = when(v.AssignmentTimestamp != 0, AssignmentTimestamp)
	case *groupmeta.StreamsGroupTargetAssignmentMetadataValue:
		f = when(v.AssignmentTimestamp != 0, AssignmentTimestamp)
	case *groupmeta.ConsumerGroupCurrentMemberAssignmentValue:
		for _, all := range [][]groupmeta.AssignedTopicPartitions{v.AssignedPartitions, v.PartitionsPendingRevocation} {
			for i := range all {
				f |= when(len(all[i].AssignmentEpochs) > 0, AssignmentEpochs)
			}
		}
	case *groupmeta.StreamsGroupMetadataValue:
		f = when(v.StoredDescriptionTopologyEpoch != -1 || v.FailedDescriptionTopologyEpoch != -1, DescriptionEpochs)
	}
	return f
}

func when(set bool, f Fields) Fields {
	if set {
		return f
	}
	return 0
}

// encoder is a decoded value of either log.
type encoder interface {
	AppendTo(dst []byte, version int16) ([]byte, error)
}

// settle writes a value in the version to, if that makes a difference. A flexible value is also written anew where its
// bytes are not the ones that Kafka would write: a release that does not know a tagged field finds its end by a size that
// one which knows it never looks at.
func settle(dst, stored []byte, v encoder, from, to int16, flexible bool, lost Fields) Result {
	if from == to && !flexible && lost == 0 {
		return Result{}
	}
	b, err := v.AppendTo(dst, to)
	if err != nil { // a text too long for the older layout
		return Result{Action: Delete, Lost: WholeRecord, Problem: err}
	}
	if b = b[len(dst):]; from == to && bytes.Equal(b, stored) {
		return Result{}
	}
	return Result{Action: Replace, Value: b, Lost: lost}
}

// gone is a record that does not stay. A tombstone loses nothing.
func gone(what Fields, value []byte, problem error) Result {
	if value == nil {
		what = 0
	}
	return Result{Action: Delete, Lost: what, Problem: problem}
}

// errNoTransactions is why releases before 0.11.0 lose every transactional id.
var errNoTransactions = errors.New("releases before 0.11.0 have no transaction log")
