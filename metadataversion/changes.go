package metadataversion

import (
	"fmt"
	"strings"
)

// Record is a record, or the records of a kind of group, whose versions change together.
type Record uint8

// The records of the two logs.
const (
	OffsetCommit Record = iota
	GroupMetadata
	TransactionLog
	ConsumerGroups
	ShareGroups
	StreamsGroups

	records
)

// String is Kafka's name.
func (r Record) String() string {
	return [...]string{"OffsetCommitValue", "GroupMetadataValue", "TransactionLogValue", "ConsumerGroup*", "ShareGroup*", "StreamsGroup*"}[r]
}

// Kind is what a version does to a record.
type Kind uint8

// Kinds of change.
const (
	NewRecord   Kind = iota // types that were not there
	NewVersion              // a field without a tag came or went, or the first flexible version
	TaggedField             // a field that readers skip when they do not know it
	Reads                   // is read from here on, and not written
)

// Change is what a version changes in a record.
type Change struct {
	Record  Record
	Kind    Kind
	Version int16  // of the value from here on
	Fields  Fields // that come
	Feature Feature
	Level   int16 // of Feature, through whose default the version brings the change; 0: not through a feature
	Needed  bool  // correctness needs the fields, or the types
	Why     string
}

// String is the change in a few words.
func (c Change) String() string {
	var what string
	switch c.Kind {
	case NewRecord:
		what = "new"
		if c.Record <= TransactionLog {
			what = fmt.Sprintf("new, v%d", c.Version)
		}
	case NewVersion:
		what = fmt.Sprintf("v%d", c.Version)
	case TaggedField:
		what = "tagged"
	case Reads:
		what = fmt.Sprintf("v%d read", c.Version)
	}
	if c.Fields != 0 {
		what += " " + strings.Join(c.Fields.Names(), ", ")
	}
	return c.Record.String() + " " + what
}

// stumbles says why a reader of the versions before would not cope with the change; empty: it would.
func (c Change) stumbles(before *state) string {
	switch {
	case c.Kind == Reads:
		return ""
	case c.Kind == NewVersion && c.Version > before.reads[c.Record]:
		return fmt.Sprintf("readers before it fail on %s v%d", c.Record, c.Version)
	case c.Kind == NewRecord && !before.tolerates:
		return fmt.Sprintf("readers before it fail on %s records", c.Record)
	case c.Kind == NewRecord && c.Needed:
		return fmt.Sprintf("readers before it skip %s records and lose what they say", c.Record)
	case c.Needed:
		return fmt.Sprintf("readers before it ignore %s, which transactions need", strings.Join(c.Fields.Names(), ", "))
	}
	return ""
}

// state is what the changes up to a version add up to.
type state struct {
	writes    [records]int16 // by features' defaults; None: no such record
	reads     [records]int16
	fields    Fields // of what is read
	tolerates bool   // KIP-915
	why       []string
}

var states = fold()

func fold() (all [Latest + 1]state) {
	now := state{}
	for r := range records {
		now.writes[r], now.reads[r] = None, None
	}
	for v := range All() {
		before := now
		now.why = nil
		for _, c := range versions[v].changes {
			if why := c.stumbles(&before); why != "" {
				now.why = append(now.why, why)
			}
			now.reads[c.Record] = max(now.reads[c.Record], c.Version)
			now.fields |= c.Fields
			if c.Kind == Reads {
				now.tolerates = true
			} else {
				now.writes[c.Record] = c.Version
			}
		}
		all[v] = now
	}
	return all
}

// Changes are what the version changes in the coordinators' records.
func (v Version) Changes() []Change {
	if !v.Known() {
		return nil
	}
	return versions[v].changes
}

// IsBackwardCompatible says whether coordinators of the version before can go on with what this version writes: KIP-915's
// flag, for the coordinators' records alone. It is derived: a tagged field that may be ignored and a value version that
// was read before it was written are compatible; a field without a tag, a tagged field that correctness needs, and record
// types that older readers fail on or lose a group by skipping are not.
func (v Version) IsBackwardCompatible() bool { return v.Known() && len(states[v].why) == 0 }

// WhyNotCompatible are the reasons, none for a compatible version.
func (v Version) WhyNotCompatible() []string {
	if !v.Known() {
		return nil
	}
	return states[v].why
}
