package state

import (
	"slices"
	"time"

	"github.com/kcoord/kcoord/metadataversion"
)

// The first versions that have a place for a field.
const (
	offsetLeaderEpoch     = 3 // of OffsetCommitValue
	offsetTopicID         = 4
	groupRebalanceTimeout = 1 // of GroupMetadataValue
	groupSince            = 2
	groupInstanceID       = 3
)

var latest = metadataversion.Writes(metadataversion.Latest, metadataversion.Defaults(metadataversion.Latest))

func (c *Codec) writes() metadataversion.RecordVersions {
	if c.Versions == (metadataversion.RecordVersions{}) {
		return latest
	}
	return c.Versions
}

// Settle is part of machine.Codec. Records that have their bytes already are what
// these say.
func (c *Codec) Settle(r *Record) {
	switch {
	case r.Tombstone || r.Key != nil:
	case r.Kind == KindOffset:
		r.Offset.settle(c.writes().OffsetCommit(!r.Offset.Expires.IsZero()))
	case r.Kind == KindGroup:
		r.Classic = r.Classic.settled(c.writes().Group)
	}
}

// settle: for an expiry time Kafka, too, gives up the leader epoch and the topic
// id, since version 1 alone has a place for it.
func (o *Offset) settle(version int16) {
	if version < offsetTopicID {
		o.TopicID = [16]byte{}
	}
	if version < offsetLeaderEpoch {
		o.LeaderEpoch = -1
	}
}

// settled is what a version keeps of a generation: c itself, where that is all.
func (c *Classic) settled(version int16) *Classic {
	lost := func(m Member) bool {
		return version < groupInstanceID && m.InstanceID != nil ||
			version < groupRebalanceTimeout && m.RebalanceTimeout != m.SessionTimeout
	}
	noSince := version < groupSince && !c.Since.IsZero()
	if !noSince && !slices.ContainsFunc(c.Members, lost) {
		return c
	}
	out := *c
	if noSince {
		out.Since = time.Time{}
	}
	out.Members = slices.Clone(c.Members)
	for i := range out.Members {
		m := &out.Members[i]
		if version < groupInstanceID {
			m.InstanceID = nil
		}
		if version < groupRebalanceTimeout { // read as the session's
			m.RebalanceTimeout = m.SessionTimeout
		}
	}
	return &out
}
