package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// SetOffsets is an operator's change of a group's offsets: all of them or none, and
// only where each still is what he expects, so that a plan which he has looked at is
// what happens. It is answered by an OffsetsSet. A group with members is left alone, but for
// offsets of topics that none of them reads, which may be deleted (KIP-496).
type SetOffsets struct {
	Group   string
	Changes []OffsetChange
	Try     bool // it is decided, and nothing is written
}

// OffsetChange is one partition's.
type OffsetChange struct {
	Topic     string
	Partition int32
	Expected  int64 // the offset that is there; -1: none
	New       int64 // -1: it is deleted

	// Of the new offset.
	LeaderEpoch int32 // -1: none
	Metadata    string
}

// OffsetsSet says what came of a SetOffsets. Nothing was written where Code is not
// 0 or Differing is not empty.
type OffsetsSet struct {
	// Code is NON_EMPTY_GROUP (then State and Members say who is in it, and Read, of
	// deletions, which of their topics the members read),
	// GROUP_ID_NOT_FOUND of a group whose protocol is not served, since it may have
	// members, INVALID_GROUP_ID or OFFSET_METADATA_TOO_LARGE.
	Code    int16
	State   string
	Members []kmsg.DescribeGroupsResponseGroupMember
	Read    []string
	// Differing are the changes whose partitions are not at Expected, with what is
	// there as Expected.
	Differing []OffsetChange
}

// Entity is part of Request.
func (r SetOffsets) Entity() (string, bool) { return r.Group, true }

// setOffsets decides for the whole of the changes before it writes one.
func (m *Machine) setOffsets(now time.Time, e *entry, r SetOffsets, out *output) OffsetsSet {
	if code := m.maySetOffsets(e, r); code != none {
		refused := OffsetsSet{Code: code}
		if code == nonEmptyGroup {
			d := m.describe(e)
			refused.State, refused.Members, refused.Read = d.State, d.Members, e.live.read(r.Changes)
		}
		return refused
	}
	hard := m.hard.Group(e.id)
	var set OffsetsSet
	for _, c := range r.Changes {
		is := int64(-1)
		if hard != nil {
			if o, ok := hard.Offset(c.Topic, c.Partition); ok {
				is = o.Offset
			}
		}
		if is != c.Expected {
			c.Expected = is
			set.Differing = append(set.Differing, c)
		}
	}
	if len(set.Differing) == 0 && !r.Try {
		m.writeOffsets(now, e, hard, r.Changes, out)
	}
	return set
}

// maySetOffsets refuses what a consumer in the group would run into.
func (m *Machine) maySetOffsets(e *entry, r SetOffsets) int16 {
	switch {
	case r.Group == "" || tooLong(r.Group):
		return invalidGroupID
	case e.kind != kindClassic:
		return groupIDNotFound
	case e.live != nil && e.live.state != stateEmpty && !e.live.indifferent(r.Changes):
		return nonEmptyGroup
	}
	for _, c := range r.Changes {
		if c.New >= 0 && (m.metadataTooLarge(c.Metadata) || tooLong(c.Metadata) || tooLong(c.Topic)) {
			return offsetMetadataTooLarge
		}
	}
	return none
}

// indifferent says whether changes are nothing to the members.
func (g *liveGroup) indifferent(changes []OffsetChange) bool {
	return g.protocolType == consumerProtocol && !slices.ContainsFunc(changes, func(c OffsetChange) bool {
		return c.New >= 0 || g.subscribed(c.Topic)
	})
}

// read are the topics of deletions that members are known to read, each once.
func (g *liveGroup) read(changes []OffsetChange) []string {
	var topics []string
	for _, c := range changes {
		if _, is := g.topics[c.Topic]; is && c.New < 0 {
			topics = append(topics, c.Topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

func (m *Machine) writeOffsets(now time.Time, e *entry, hard *state.Group, changes []OffsetChange, out *output) {
	written, deleted := 0, 0
	for _, c := range changes {
		if c.New >= 0 {
			written++
			out.Record(state.Record{Kind: state.KindOffset, Group: e.id, Topic: c.Topic, Partition: c.Partition, Offset: state.Offset{
				Offset: c.New, LeaderEpoch: c.LeaderEpoch, Metadata: c.Metadata, Committed: now,
			}})
		} else if hard != nil {
			deleted += m.deleteOffset(hard, c.Topic, c.Partition, out)
		}
	}
	m.counts.OffsetCommits += int64(written)
	m.counts.OffsetsDeleted += int64(deleted)
	if written > 0 {
		if e.live == nil {
			e.live = newLiveGroup(e, now)
		}
		m.checkCommitted(now, e, time.Time{})
	}
	if deleted > 0 {
		m.checkSoon(e) // it may have been the last one
	}
}
