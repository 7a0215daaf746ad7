package metadataversion

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// release is what Kafka's own enum said in one release (../shared/fixtures/README.md).
type release struct {
	Kafka            string
	Constants        map[string]string
	MetadataVersions []struct {
		Name, Release, IvVersion string
		FeatureLevel             int16
		DidMetadataChange        bool
		Previous                 string
	}
	Methods                map[string]json.RawMessage
	CheckIfMetadataChanged struct{ Rows []string }
	FromVersionString      map[string]string
	FromFeatureLevel       map[string]string
	Features               map[string]struct {
		LatestProduction string
		Levels           []struct {
			Name                       string
			Level                      int16
			BootstrapMetadataVersion   string
			Dependencies               map[string]int16
			TransactionLogValueVersion *int16
		}
	}
	FeatureDefaultLevelByMetadataVersion map[string]map[string]int16
	RecordVersionsWritten                map[string]json.RawMessage
}

// releases are those of the committed extract, and of the whole fixture where that is beside the checkout.
func releases(t *testing.T) []release {
	t.Helper()
	files := []string{filepath.Join("testdata", "metadata-versions.json")}
	shared := filepath.Join("..", "..", "shared", "fixtures", "metadata-versions.json")
	if _, err := os.Stat(shared); err == nil {
		files = append(files, shared)
	} else {
		t.Logf("%s is absent: only the extract in testdata is checked", shared)
	}
	var all []release
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var some []release
		if err := json.Unmarshal(b, &some); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, some...)
	}
	return all
}

// production is the release's last version that was meant for use. Those after it were renamed or got another meaning
// before they were: 3.7.2 has a 3.8-IV0 that changes metadata, 3.9.1 a 4.0-IV0 that turned into 4.0-IV1.
func (r *release) production(t *testing.T) Version {
	t.Helper()
	for _, name := range []string{"LATEST_PRODUCTION", "latest()"} {
		if n := r.Constants[name]; n != "" {
			return kafkas(t, n)
		}
	}
	t.Fatalf("%s: no latest version in %v", r.Kafka, r.Constants)
	return 0
}

func kafkas(t *testing.T, name string) Version {
	t.Helper()
	v, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func each(t *testing.T, check func(t *testing.T, r *release, production Version)) {
	for _, r := range releases(t) {
		t.Run(r.Kafka, func(t *testing.T) { check(t, &r, r.production(t)) })
	}
}

func TestVersionsAreKafkas(t *testing.T) {
	each(t, func(t *testing.T, r *release, production Version) {
		first, at := kafkas(t, r.MetadataVersions[0].Name), 0
		if first != Lowest && first != LowestOfKRaft4 {
			t.Errorf("the first is %s", first)
		}
		for v := first; v <= production; v++ {
			m := r.MetadataVersions[at]
			if v.String() != m.IvVersion || v.Level() != m.FeatureLevel || v.Release() != m.Release || v.DidMetadataChange() != m.DidMetadataChange {
				t.Errorf("%s: level %d, release %s, metadata changed %t, Kafka has %+v", v, v.Level(), v.Release(), v.DidMetadataChange(), m)
			}
			if kafkas(t, m.Name) != v {
				t.Errorf("%s reads as %s", m.Name, kafkas(t, m.Name))
			}
			if before, ok := v.Previous(); ok && m.Previous != "" && kafkas(t, m.Previous) != before {
				t.Errorf("before %s comes %s, Kafka says %s", v, before, m.Previous)
			}
			for to := first; to <= production; to++ {
				if got, want := MetadataChanged(v, to), r.CheckIfMetadataChanged.Rows[at][to-first] == '1'; got != want {
					t.Errorf("metadata changes between %s and %s: %t, Kafka says %t", v, to, got, want)
				}
			}
			at++
		}
	})
}

func TestParsesAsKafka(t *testing.T) {
	each(t, func(t *testing.T, r *release, production Version) {
		for text, want := range r.FromVersionString {
			text, unstable, _ := strings.Cut(text, " [unstable=")
			if strings.HasPrefix(unstable, "true") {
				continue
			}
			v, err := Parse(text)
			switch refused := strings.HasPrefix(want, "!"); {
			case refused && err == nil && v <= production && v >= kafkas(t, r.MetadataVersions[0].Name) && text != "3":
				t.Errorf("%q is %s, Kafka %s refuses it", text, v, r.Kafka)
			case !refused && err != nil:
				t.Errorf("%q: %v, Kafka says %s", text, err, want)
			case !refused && v <= production && v != kafkas(t, want):
				t.Errorf("%q is %s, Kafka says %s", text, v, want)
			}
		}
		for text, want := range r.FromFeatureLevel {
			if _, err := Parse(want); err != nil || text == "-1" { // refused, meant for tests only, or without a level
				continue
			}
			if v, err := Parse(text); err != nil || v <= production && v != kafkas(t, want) {
				t.Errorf("level %s is %s, %v, Kafka says %s", text, v, err, want)
			}
		}
	})
}

func TestFeaturesAreKafkas(t *testing.T) {
	each(t, func(t *testing.T, r *release, production Version) {
		for name, want := range r.Features {
			f, ok := FeatureByName(name)
			if !ok {
				if len(want.Levels) > 0 && !strings.HasPrefix(name, "test.") {
					t.Errorf("%s is not known", name)
				}
				continue
			}
			for _, l := range want.Levels {
				since, err := Parse(l.BootstrapMetadataVersion)
				if err != nil || since > production { // not for use in that release
					continue
				}
				if got := f.Since(l.Level); l.Level > 0 && got != since || l.Level > f.Highest() {
					t.Errorf("%s %d is the default from %s on, Kafka says %s", f, l.Level, got, since)
				}
				if needs, ok := l.Dependencies[FeatureName]; ok && f != KRaftVersion && featureTable[f].levels[l.Level].requires.Level() != needs {
					t.Errorf("%s %d needs %s, Kafka says level %d", f, l.Level, featureTable[f].levels[l.Level].requires, needs)
				}
				if l.TransactionLogValueVersion != nil {
					levels := Defaults(production)
					levels[TransactionVersion] = l.Level
					if got := Writes(production, levels).Transaction; got != *l.TransactionLogValueVersion {
						t.Errorf("at %s %d TransactionLogValue %d is written, Kafka says %d", f, l.Level, got, *l.TransactionLogValueVersion)
					}
				}
			}
			if r.Kafka == "4.4.0" && int(f.Highest()) != len(want.Levels)-1 {
				t.Errorf("%s goes to %d, Kafka has %d levels", f, f.Highest(), len(want.Levels))
			}
		}
		for name, byVersion := range r.FeatureDefaultLevelByMetadataVersion {
			f, _ := FeatureByName(name)
			for version, want := range byVersion {
				if v, err := Parse(version); err == nil && v <= production && f.Default(v) != want {
					t.Errorf("%s is %d by default at %s, Kafka says %d", f, f.Default(v), v, want)
				}
			}
		}
	})
}

// TestWritesAsKafka: 3.7 and 3.9 say for each version what they write. Kafka 4.x writes the same at all of them; here a
// lower one goes on writing what its own release wrote.
func TestWritesAsKafka(t *testing.T) {
	each(t, func(t *testing.T, r *release, production Version) {
		perVersion := func(method string, got func(Version) int16) {
			var want []int16
			if json.Unmarshal(r.Methods[method], &want) != nil {
				return
			}
			for i, w := range want {
				if v, err := Parse(r.MetadataVersions[i].Name); err == nil && v <= production && got(v) != w {
					t.Errorf("%s: %s is %d, Kafka says %d", v, method, got(v), w)
				}
			}
		}
		group := func(v Version) int16 { return Writes(v, Defaults(v)).Group }
		plain := func(v Version) int16 { return Writes(v, Defaults(v)).OffsetCommit(false) }
		expires := func(v Version) int16 { return Writes(v, Defaults(v)).OffsetCommit(true) }
		perVersion("groupMetadataValueVersion", group)
		perVersion("offsetCommitValueVersion(false)", plain)
		perVersion("offsetCommitValueVersion(true)", expires)
		for method, got := range map[string]func(Version) int16{
			"groupMetadataValueVersion": group, "offsetCommitValueVersion(false)": plain, "offsetCommitValueVersion(true)": expires} {
			var want int16
			if json.Unmarshal(r.RecordVersionsWritten[method], &want) == nil && len(r.RecordVersionsWritten[method]) > 0 && got(production) != want {
				t.Errorf("%s: %s is %d, Kafka says %d", production, method, got(production), want)
			}
		}
	})
}
