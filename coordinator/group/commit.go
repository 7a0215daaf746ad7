package group

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// commit writes offsets. Who may commit is the same for all partitions.
func (m *Machine) commit(now time.Time, e *entry, r Commit, out *output) *kmsg.OffsetCommitResponse {
	resp := commitReply(r, none)
	if len(r.Topics) == 0 {
		return resp // not even the group is looked at
	}
	if code := m.mayCommit(now, e, r); code != none {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				resp.Topics[i].Partitions[j].ErrorCode = code
			}
		}
		return resp
	}
	expires := expiry(now, r.RetentionTimeMillis)
	n := len(out.Records)
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			metadata, ok := m.metadataOf(t.Topic, p.Metadata)
			if !ok {
				resp.Topics[i].Partitions[j].ErrorCode = offsetMetadataTooLarge
				continue
			}
			rec := out.Next()
			rec.Kind, rec.Group, rec.Topic, rec.Partition = state.KindOffset, e.id, t.Topic, p.Partition
			o := &rec.Offset
			o.Offset, o.LeaderEpoch, o.Metadata = p.Offset, p.LeaderEpoch, strings.Clone(metadata)
			o.Committed, o.Expires, o.TopicID = now, expires, t.TopicID
			if !expires.IsZero() { // the one value version with an expiry time has neither
				o.LeaderEpoch, o.TopicID = -1, [16]byte{}
			}
		}
	}
	if n = len(out.Records) - n; n > 0 {
		m.counts.OffsetCommits += int64(n)
		if e.live == nil && e.kind == kindClassic {
			e.live = newLiveGroup(e, now)
		}
		m.checkCommitted(now, e, expires)
	}
	return resp
}

// mayCommit checks who commits, in Kafka's order, and refreshes its session.
func (m *Machine) mayCommit(now time.Time, e *entry, r Commit) int16 {
	switch {
	case e.kind != kindClassic:
		return none // its members are unknown to this version: as from a simple consumer
	case tooLong(r.Group):
		return invalidGroupID
	case e.live == nil && r.Generation >= 0:
		return groupIDNotFound
	case e.live == nil:
		return none // it becomes a group that only keeps offsets
	}
	g := e.live
	if r.Generation < 0 && g.state == stateEmpty {
		return none // an operator, or a consumer without group management
	}
	if r.Generation < 0 && r.MemberID == "" && r.InstanceID == nil {
		return unknownMemberID
	}
	mb, code := g.check(r.MemberID, r.InstanceID)
	switch {
	case code != none:
		return code
	case r.Generation != g.generation:
		return illegalGeneration
	case g.state == stateCompleting:
		// It has the generation from its join: it joins again and commits later.
		return rebalanceInProgress
	}
	m.beat(now, e, mb)
	return none
}

// commitReply answers all partitions of a commit with one code.
func commitReply(r Commit, code int16) *kmsg.OffsetCommitResponse {
	resp := kmsg.NewPtrOffsetCommitResponse()
	n := 0
	for i := range r.Topics {
		n += len(r.Topics[i].Partitions)
	}
	all := make([]kmsg.OffsetCommitResponseTopicPartition, 0, n)
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		t := &r.Topics[i]
		from := len(all)
		for j := range t.Partitions {
			all = append(all, kmsg.OffsetCommitResponseTopicPartition{Partition: t.Partitions[j].Partition, ErrorCode: code})
		}
		resp.Topics[i] = kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: all[from:len(all):len(all)]}
	}
	return resp
}

// metadataOf is the metadata that is written for a partition of a topic; not ok: it is
// more than is allowed, or no record can hold it.
func (m *Machine) metadataOf(topic string, metadata *string) (s string, ok bool) {
	if metadata != nil {
		s = *metadata
	}
	return s, !m.metadataTooLarge(s) && !tooLong(s) && !tooLong(topic)
}

// metadataTooLarge counts as Java does, in UTF-16 units.
func (m *Machine) metadataTooLarge(s string) bool {
	if len(s) <= m.cfg.MetadataMaxChars { // never fewer bytes than units
		return false
	}
	units := utf8.RuneCountInString(s)
	for _, r := range s {
		if r >= 0x10000 {
			units++
		}
	}
	return units > m.cfg.MetadataMaxChars
}

// expiry is when an offset goes that was committed with a retention time of its
// own (v2 to v4; -1: none).
func expiry(now time.Time, retention int64) time.Time {
	if retention == -1 {
		return time.Time{}
	}
	at := now.UnixMilli()
	if retention > math.MaxInt64-at {
		retention = math.MaxInt64 - at
	}
	return time.UnixMilli(max(at+retention, 0)).UTC()
}
