package metadataversion

import (
	"fmt"
	"math"

	"github.com/hashicorp/go-multierror"
)

// FeatureName is the name of the version itself among Kafka's features.
const FeatureName = "metadata.version"

// Feature is one of Kafka's features beside metadata.version.
type Feature uint8

// The features of Kafka 4.4.
const (
	TransactionVersion Feature = iota
	GroupVersion
	KRaftVersion
	ShareVersion
	StreamsVersion
	EligibleLeaderReplicasVersion

	features
)

// Features are all of them.
func Features() []Feature {
	all := make([]Feature, features)
	for f := range all {
		all[f] = Feature(f)
	}
	return all
}

// level is one level of a feature; its number is its place.
type level struct {
	since    Version // the version whose default it is, with those that follow
	requires Version // 0: nothing
}

var featureTable = [features]struct {
	name   string
	levels []level
}{
	TransactionVersion: {"transaction.version", []level{{}, {since: V4_0_IV2}, {since: V4_0_IV2}}},
	GroupVersion:       {"group.version", []level{{}, {since: V4_0_IV0}}},
	// Kafka 3.9 and 4.0 also wanted 3.9-IV0 for level 1; 4.4 no longer does.
	KRaftVersion:   {"kraft.version", []level{{}, {since: V3_9_IV0}}},
	ShareVersion:   {"share.version", []level{{}, {since: V4_2_IV0}, {since: V4_4_IV0}}},
	StreamsVersion: {"streams.version", []level{{}, {since: V4_2_IV1}}},
	// By default from 4.1, but possible as soon as the controller's records can hold it.
	EligibleLeaderReplicasVersion: {"eligible.leader.replicas.version", []level{{}, {since: V4_1_IV0, requires: V4_0_IV1}}},
}

// String is Kafka's name.
func (f Feature) String() string { return featureTable[f].name }

// Highest is the highest level; the lowest is always 0.
func (f Feature) Highest() int16 { return int16(len(featureTable[f].levels) - 1) }

// Since is the first version whose default the level is; for level 0 it is the lowest.
func (f Feature) Since(level int16) Version {
	if level <= 0 || level > f.Highest() {
		return Lowest
	}
	return featureTable[f].levels[level].since
}

// Default is the level that a cluster bootstrapped at v gets.
func (f Feature) Default(v Version) int16 {
	for l := f.Highest(); l > 0; l-- {
		if v >= featureTable[f].levels[l].since {
			return l
		}
	}
	return 0
}

// FeatureByName finds a feature by Kafka's name.
func FeatureByName(name string) (Feature, bool) {
	for f := range features {
		if featureTable[f].name == name {
			return f, true
		}
	}
	return 0, false
}

// Levels are the finalized levels of all features, by [Feature].
type Levels [features]int16

// Defaults are the levels that a cluster bootstrapped at v gets.
func Defaults(v Version) (l Levels) {
	for f := range features {
		l[f] = f.Default(v)
	}
	return l
}

// Lowered is l with each feature at most at v's default, which is what going back to v leaves of it.
func (l Levels) Lowered(v Version) Levels {
	for f, d := range Defaults(v) {
		l[f] = min(l[f], d)
	}
	return l
}

// Check says what is wrong with the levels at version v, everything at once: levels that do not exist and those whose
// dependency v does not meet.
func (l Levels) Check(v Version) error {
	var all *multierror.Error
	for f, n := range l {
		f := Feature(f)
		if n < 0 || n > f.Highest() {
			all = multierror.Append(all, fmt.Errorf("%s: there is no level %d: use 0 to %d", f, n, f.Highest()))
			continue
		}
		if needs := featureTable[f].levels[n].requires; needs > v {
			all = multierror.Append(all, fmt.Errorf("%s %d needs metadata.version %d (%s), not %s: raise that first", f, n, needs.Level(), needs, v))
		}
	}
	return all.ErrorOrNil()
}

// CheckSupported is for a level that came over the wire as a feature's own range does: it must exist.
func (f Feature) CheckSupported(level int32) (int16, error) {
	if level < 0 || level > math.MaxInt16 || int16(level) > f.Highest() {
		return 0, fmt.Errorf("%s: there is no level %d: use 0 to %d", f, level, f.Highest())
	}
	return int16(level), nil
}
