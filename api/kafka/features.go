package kafka

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/metadataversion"
)

// Versions keeps what is finalized: the version and the features that say how the
// coordinator writes its records.
type Versions interface {
	Finalized() coordinator.Finalized
	Change(ctx context.Context, c coordinator.Change) (*coordinator.Changed, error)
}

// Whose a feature is: what decides about the coordinator's records and protocols is
// decided here, since the coordinator is here, and the broker's level of it would
// promise what is not served. metadata.version is one of these: to clients it is what
// kcoord writes. That of the broker's cluster, which is about KRaft's own records, is seen
// and changed at its controllers. What is about KRaft alone is the broker's where it
// has it, unless it is embedded and has no listener of its own.
func (a *announcement) own(f metadataversion.Feature) bool {
	switch f {
	case metadataversion.KRaftVersion, metadataversion.EligibleLeaderReplicasVersion:
		return !a.broker[f.String()]
	}
	return true
}

// features announces our own features and those of the broker. Clients keep the newest
// answer by its epoch, so that is the sum of both.
func (a *announcement) features(f *coordinator.Finalized, transactionVersion int16, embedded bool) {
	resp := &a.resp
	a.broker = map[string]bool{}
	if a.of != nil {
		resp.FinalizedFeaturesEpoch = max(a.of.FinalizedFeaturesEpoch, 0)
		for _, s := range a.of.SupportedFeatures {
			if theirs(s.Name, embedded) {
				a.broker[s.Name] = true
				resp.SupportedFeatures = append(resp.SupportedFeatures, s)
			}
		}
		for _, s := range a.of.FinalizedFeatures {
			if theirs(s.Name, embedded) {
				resp.FinalizedFeatures = append(resp.FinalizedFeatures, s)
			}
		}
	}
	if f == nil {
		a.add(metadataversion.TransactionVersion.String(), 0, transactionVersion, transactionVersion)
		return
	}
	resp.FinalizedFeaturesEpoch = max(resp.FinalizedFeaturesEpoch, 0) + f.Epoch
	// Kafka 4's own tool knows no lower one by name, and none is missed by those who have it.
	lowest := min(metadataversion.LowestOfKRaft4, max(f.Version, metadataversion.LowestLevel))
	a.add(metadataversion.FeatureName, lowest.Level(), metadataversion.Latest.Level(), f.Version.Level())
	for _, feature := range metadataversion.Features() {
		level := f.Levels[feature]
		if feature == metadataversion.TransactionVersion {
			level = transactionVersion
		}
		if a.own(feature) {
			a.add(feature.String(), 0, feature.Highest(), level)
		}
	}
	slices.SortFunc(resp.SupportedFeatures, func(x, y kmsg.ApiVersionsResponseSupportedFeature) int { return strings.Compare(x.Name, y.Name) })
	slices.SortFunc(resp.FinalizedFeatures, func(x, y kmsg.ApiVersionsResponseFinalizedFeature) int { return cmp.Compare(x.Name, y.Name) })
}

// theirs says whether a feature that a broker has can be told of as it is.
func theirs(name string, embedded bool) bool {
	f, known := metadataversion.FeatureByName(name)
	return !known && name != metadataversion.FeatureName ||
		known && !embedded && (f == metadataversion.KRaftVersion || f == metadataversion.EligibleLeaderReplicasVersion)
}

// add tells of one feature. As with Kafka, one at level 0 is not finalized, nor is a
// version that has no level.
func (a *announcement) add(name string, lowest, highest, level int16) {
	s := kmsg.NewApiVersionsResponseSupportedFeature()
	s.Name, s.MinVersion, s.MaxVersion = name, lowest, highest
	a.resp.SupportedFeatures = append(a.resp.SupportedFeatures, s)
	if level <= 0 {
		return
	}
	f := kmsg.NewApiVersionsResponseFinalizedFeature()
	f.Name, f.MinVersionLevel, f.MaxVersionLevel = name, level, level
	a.resp.FinalizedFeatures = append(a.resp.FinalizedFeatures, f)
}

// transactionVersion is what clients are told: what is finalized, within what the settings allow.
func (s *Server) transactionVersion(f *coordinator.Finalized) int16 {
	if f == nil {
		return s.o.TransactionVersion
	}
	return min(f.Levels[metadataversion.TransactionVersion], s.o.TransactionVersion)
}

// finalized is what is finalized here, nil where nothing keeps it.
func (s *Server) finalized() *coordinator.Finalized {
	if s.o.Versions == nil {
		return nil
	}
	f := s.o.Versions.Finalized()
	return &f
}
