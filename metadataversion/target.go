package metadataversion

import "fmt"

// unknownPatch is the patch number of a release of which only the line is known.
const unknownPatch = -1

// Release is a release of Kafka: a line such as 3.4 and a patch number.
type Release struct {
	last  Version // of the line
	Patch int     // negative: not known
}

// tolerant are the first patch releases of the older lines that have KIP-915; from 3.5 on all have it.
var tolerant = map[string]int{"3.0": 3, "3.1": 3, "3.2": 4, "3.3": 3, "3.4": 1}

// ReleaseOf is the line that v came with.
func ReleaseOf(v Version) Release { return Release{v.last(), unknownPatch} }

// String is for example 3.4.1, or 3.4.
func (r Release) String() string {
	if r.Patch < 0 {
		return r.last.Release()
	}
	return fmt.Sprintf("%s.%d", r.last.Release(), r.Patch)
}

// Tolerates says whether the release has KIP-915: it skips record types and tagged fields that it does not know. Where
// the patch number is not known, the first release of the line counts.
func (r Release) Tolerates() bool {
	if states[r.last].tolerates {
		return true
	}
	first, ok := tolerant[r.last.Release()]
	return ok && r.Patch >= first
}

// Tolerant is the nearest release, of the same line or a later one, that tolerates newer records.
func (r Release) Tolerant() Release {
	if r.Tolerates() {
		return r
	}
	for v := r.last; v <= Latest; v++ {
		if patch, ok := tolerant[v.Release()]; ok {
			return Release{v.last(), patch}
		}
	}
	return ReleaseOf(V3_5_IV2)
}

// Target is where a downgrade leads, or where it starts: a finalized version with its features, and the release that
// reads the records.
type Target struct {
	Version Version
	Levels  Levels
	Release Release
}

// TargetOf is a version with its default features, read by its own line's first release.
func TargetOf(v Version) Target { return Target{v, Defaults(v), ReleaseOf(v)} }

// At is the target with other levels.
func (t Target) At(l Levels) Target {
	t.Levels = l
	return t
}

// String names the version, and the release where it is known.
func (t Target) String() string {
	if t.Release.Patch < 0 {
		return t.Version.String()
	}
	return fmt.Sprintf("%s (Kafka %s)", t.Version, t.Release)
}
