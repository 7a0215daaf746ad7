package kafka

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/metadataversion"
)

// finalizer keeps a version, and loses something by every downgrade below 4.1.
type finalizer struct {
	mu   sync.Mutex
	now  coordinator.Finalized
	last coordinator.Change
}

func newFinalizer() *finalizer {
	return &finalizer{now: coordinator.Finalized{
		Version: metadataversion.Latest, Levels: metadataversion.Defaults(metadataversion.Latest), Epoch: 7,
	}}
}

func (f *finalizer) Finalized() coordinator.Finalized {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *finalizer) Change(_ context.Context, c coordinator.Change) (*coordinator.Changed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = c
	if c.To.Version < metadataversion.V4_1_IV0 && !c.Force {
		return nil, &coordinator.Lossy{Plan: &metadataversion.Plan{Losses: []metadataversion.Loss{{What: metadataversion.TopicID, Records: 3, Type: 1}}}}
	}
	if !c.DryRun {
		f.now = coordinator.Finalized{Version: c.To.Version, Levels: c.To.Levels, Epoch: f.now.Epoch + 1}
	}
	return &coordinator.Changed{}, nil
}

func levels(resp *kmsg.ApiVersionsResponse) map[string]int16 {
	m := map[string]int16{}
	for _, f := range resp.FinalizedFeatures {
		m[f.Name] = f.MaxVersionLevel
	}
	return m
}

func TestFeaturesAreAnnounced(t *testing.T) {
	v := newFinalizer()
	s := newStage(t, yes, func(o *Options) { o.Versions = v })
	c := s.client()
	got := do[*kmsg.ApiVersionsResponse](c, 4, asker())
	m := levels(got)
	for name, want := range map[string]int16{"metadata.version": 33, "transaction.version": 2, "group.version": 1, "share.version": 2, "streams.version": 1} {
		if m[name] != want {
			t.Errorf("%s is at %d", name, m[name])
		}
	}
	supported := map[string][2]int16{}
	for _, f := range got.SupportedFeatures {
		if _, twice := supported[f.Name]; twice {
			t.Errorf("%s is told of twice", f.Name)
		}
		supported[f.Name] = [2]int16{f.MinVersion, f.MaxVersion}
	}
	if supported["metadata.version"] != [2]int16{7, 33} || supported["transaction.version"] != [2]int16{0, 2} {
		t.Errorf("%v", supported)
	}
	before := got.FinalizedFeaturesEpoch
	old := metadataversion.TargetOf(metadataversion.V2_8_IV1)
	if _, err := v.Change(t.Context(), coordinator.Change{To: old, Force: true}); err != nil {
		t.Fatal(err)
	}
	got = do[*kmsg.ApiVersionsResponse](c, 4, asker())
	if _, told := levels(got)["metadata.version"]; told || got.FinalizedFeaturesEpoch <= before {
		t.Errorf("a version without a level: %v, epoch %d after %d", levels(got), got.FinalizedFeaturesEpoch, before)
	}
}

func updateOf(kind int8, of ...any) *kmsg.UpdateFeaturesRequest {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.TimeoutMillis = 1000
	for i := 0; i < len(of); i += 2 {
		f := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		f.Feature, f.MaxVersionLevel, f.UpgradeType, f.AllowDowngrade = of[i].(string), int16(of[i+1].(int)), kind, kind == safeDowngrade
		req.FeatureUpdates = append(req.FeatureUpdates, f)
	}
	return req
}

func TestUpdateFeatures(t *testing.T) {
	const mv, tv = "metadata.version", "transaction.version"
	for _, tc := range []struct {
		name string
		req  *kmsg.UpdateFeaturesRequest
		dry  bool
		code int16
		says string
		to   metadataversion.Version // 0: as it was
		tv   int16
	}{
		{"safe downgrade", updateOf(safeDowngrade, mv, 30), false, 0, "", metadataversion.V4_3_IV0, 2},
		{"validated", updateOf(safeDowngrade, mv, 30), true, 0, "", 0, 2},
		{"lossy", updateOf(safeDowngrade, mv, 20), false, 95, "would lose what is stored", 0, 2},
		{"forced", updateOf(unsafeDowngrade, mv, 20), false, 0, "", metadataversion.V3_8_IV0, 0},
		{"forced, validated", updateOf(unsafeDowngrade, mv, 20), true, 0, "", 0, 2},
		{"not said to be one", updateOf(upgrade, mv, 20), false, 95, "Can't downgrade the version", 0, 2},
		{"to a newer one", updateOf(safeDowngrade, mv, 99), false, 95, "from 1 to 33", 0, 2},
		{"unchanged", updateOf(upgrade, mv, 33, tv, 2), false, 0, "", 0, 2},
		{"feature", updateOf(safeDowngrade, tv, 1), false, 0, "", 0, 1},
		{"disabled", updateOf(safeDowngrade, tv, 0), false, 0, "", 0, 0},
		{"no such level", updateOf(upgrade, tv, 3), false, 95, "from 0 to 2", 0, 2},
		{"negative", updateOf(safeDowngrade, tv, -1), false, 95, "less than 0", 0, 2},
		{"no such feature", updateOf(upgrade, "left.version", 1), false, 95, "no such feature", 0, 2},
		{"twice", updateOf(safeDowngrade, tv, 1, tv, 0), false, 95, "twice", 0, 2},
		{"all or none", updateOf(safeDowngrade, tv, 1, "left.version", 0), false, 95, "no such feature", 0, 2},
		{"the broker's", updateOf(safeDowngrade, "kraft.version", 0), false, 95, "KRaft's, not kcoord's", 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for version := int16(0); version <= 2; version++ {
				v := newFinalizer()
				s := newStage(t, yes, func(o *Options) { o.Versions = v })
				tc.req.ValidateOnly = tc.dry
				unsaid := version == 0 && (tc.dry || tc.req.FeatureUpdates[0].UpgradeType == unsafeDowngrade) // not in that version
				if unsaid {
					continue
				}
				got := do[*kmsg.UpdateFeaturesResponse](s.client(), version, tc.req)
				code, says := got.ErrorCode, got.ErrorMessage
				if version < 2 {
					if len(got.Results) != len(tc.req.FeatureUpdates) {
						t.Fatalf("v%d: %d results", version, len(got.Results))
					}
					code, says = got.Results[0].ErrorCode, got.Results[0].ErrorMessage
				}
				if code != tc.code || tc.code != 0 && !strings.Contains(*says, tc.says) {
					t.Errorf("v%d: %d %v", version, code, *says)
				}
				want := metadataversion.Latest
				if tc.to != 0 {
					want = tc.to
				}
				if now := v.Finalized(); now.Version != want || now.Levels[metadataversion.TransactionVersion] != tc.tv {
					t.Errorf("v%d: at %s, transaction.version %d", version, now.Version, now.Levels[metadataversion.TransactionVersion])
				}
			}
		})
	}
}
