package metadataversion

import (
	"iter"
	"strings"
)

// Version is a metadata.version, in Kafka's order. The zero value is none.
type Version uint8

// Bounds.
const (
	Lowest         = V0_8_0
	LowestLevel    = V3_0_IV1 // the first with a level: KRaft could run
	LowestOfKRaft4 = V3_3_IV3 // the lowest that Kafka 4.x still starts with
	Latest         = V4_4_IV2
)

// None is the level of versions that have none.
const None = -1

// All iterates over the versions in order.
func All() iter.Seq[Version] {
	return func(yield func(Version) bool) {
		for v := Lowest; v <= Latest; v++ {
			if !yield(v) {
				return
			}
		}
	}
}

// Known says whether v is one of the table.
func (v Version) Known() bool { return v >= Lowest && v <= Latest }

// String is Kafka's name, for example 3.4-IV0.
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return versions[v].name
}

// Level is the feature level, or [None] before 3.0-IV1.
func (v Version) Level() int16 {
	if !v.Known() {
		return None
	}
	return versions[v].level
}

// Release is the line of releases that the version came with, for example 3.4.
func (v Version) Release() string {
	release, _, _ := strings.Cut(v.String(), "-")
	return release
}

// DidMetadataChange is Kafka's own mark: whether the format of KRaft's metadata, which is not the coordinators', changed.
func (v Version) DidMetadataChange() bool { return v.Known() && versions[v].changed }

// Previous is the version before; false for the first.
func (v Version) Previous() (Version, bool) { return v - 1, v.Known() && v > Lowest }

// FromLevel is the version of a feature level, of which those below [LowestLevel] have none.
func FromLevel(level int16) (Version, bool) {
	for v := LowestLevel; v <= Latest && level > 0; v++ {
		if versions[v].level == level {
			return v, true
		}
	}
	return 0, false
}

// last is the last version of v's release, which is what the release's software knows.
func (v Version) last() Version {
	for v < Latest && (v+1).Release() == v.Release() {
		v++
	}
	return v
}

// MetadataChanged says whether the format of KRaft's metadata differs between two versions, in which case Kafka refuses to
// go from the higher to the lower one unless told that this is unsafe.
func MetadataChanged(a, b Version) bool {
	for v := min(a, b) + 1; v <= max(a, b); v++ {
		if v.DidMetadataChange() {
			return true
		}
	}
	return false
}
