package metadataversion

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"
	"github.com/kcoord/kcoord/groupmeta"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Version{
		"3.4": V3_4_IV0, "3.4-IV0": V3_4_IV0, "3.4-iv0": V3_4_IV0, " 3.4 ": V3_4_IV0, "8": V3_4_IV0, "3.4.1": V3_4_IV0,
		"IBP_3_4_IV0": V3_4_IV0, "ibp_0_10_1_IV2": V0_10_1_IV2, "IBP_0_8_2": V0_8_2, "7": V3_3_IV3, "33": V4_4_IV2,
		"0.8.2": V0_8_2, "0.8.2.2": V0_8_2, "0.10.1": V0_10_1_IV2, "0.10.1.1": V0_10_1_IV2, "2.1": V2_1_IV2, "4.4": Latest,
		"4.0": V4_0_IV3, "1.0": V1_0_IV0, "1": V3_0_IV1,
	} {
		if v, err := Parse(text); err != nil || v != want {
			t.Errorf("%q is %s, %v, want %s", text, v, err, want)
		}
	}
	for text, want := range map[string]string{
		"4.0-IV9": `metadata.version "4.0-IV9" is not known: the nearest are 4.0-IV0, 4.0-IV1, 4.0-IV2, 4.0-IV3 (kcoord versions lists all)`,
		"4.5":     `metadata.version "4.5" is not known: the nearest are 4.4-IV2 (kcoord versions lists all)`,
		"2.9":     `metadata.version "2.9" is not known: the nearest are 2.8-IV1, 3.0-IV1 (kcoord versions lists all)`,
		"0.7":     `metadata.version "0.7" is not known: the nearest are 0.8.0 (kcoord versions lists all)`,
		"":        `metadata.version "" is not known: the nearest are 4.4-IV2, 3.3-IV3 (kcoord versions lists all)`,
		"latest":  `metadata.version "latest" is not known: the nearest are 4.4-IV2, 3.3-IV3 (kcoord versions lists all)`,
		"0":       "no metadata.version has level 0: use 1 to 33, or a name such as 4.4-IV2",
		"34":      "no metadata.version has level 34: use 1 to 33, or a name such as 4.4-IV2",
		"-1":      "no metadata.version has level -1: use 1 to 33, or a name such as 4.4-IV2",
		"99999":   "no metadata.version has level 99999: use 1 to 33, or a name such as 4.4-IV2",
	} {
		if v, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q is %s, %v\nwant %s", text, v, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for v := range All() {
		f.Add(v.String())
	}
	for _, s := range []string{"3.4.1", "IBP_3_4_IV0", "7", "-1", "3.9.1-SNAPSHOT", "0.10", "..", "9999999999999999999", "4.0-IV9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		switch {
		case (err == nil) != v.Known():
			t.Fatalf("%q: %s, %v", s, v, err)
		case err != nil && (strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 400):
			t.Fatalf("%q: a long or broken line: %v", s, err)
		case err == nil:
			if again, err := Parse(v.String()); err != nil || again != v {
				t.Fatalf("%q is %s, which is %s, %v", s, v, again, err)
			}
		}
	})
}

func TestTolerance(t *testing.T) {
	for text, want := range map[string]string{
		"3.0.2": "3.0.3", "3.0.3": "", "3.1.2": "3.1.3", "3.1.3": "", "3.2.3": "3.2.4", "3.2.4": "", "3.3.2": "3.3.3", "3.3.3": "",
		"3.4.0": "3.4.1", "3.4.1": "", "3.4": "3.4.1", "3.5": "", "3.5.0": "", "4.4": "", "2.8.2": "3.0.3", "0.9.0.1": "3.0.3", "8": "3.4.1",
	} {
		to, err := ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := to.Release.Tolerates(); got != (want == "") {
			t.Errorf("%s tolerates newer records: %t", text, got)
		}
		if via := to.Release.Tolerant(); want != "" && via.String() != want {
			t.Errorf("to %s by way of %s, want %s", text, via, want)
		}
	}
}

// TestCompatible holds the derived flags against a list of what is known to be incompatible. It is the test that is to
// fail when somebody changes the table.
func TestCompatible(t *testing.T) {
	incompatible := []Version{V0_8_0, V0_10_1_IV0, V0_11_0_IV0, V2_1_IV0, V2_1_IV1, V2_3_IV0, V4_0_IV0, V4_0_IV2, V4_1_IV0, V4_2_IV0, V4_2_IV1}
	for v := range All() {
		want := true
		for _, i := range incompatible {
			want = want && i != v
		}
		if v.IsBackwardCompatible() != want || want != (len(v.WhyNotCompatible()) == 0) {
			t.Errorf("%s: compatible %t, %q", v, !want, v.WhyNotCompatible())
		}
	}
}

func TestLevels(t *testing.T) {
	l := Defaults(Latest)
	if err := l.Check(Latest); err != nil {
		t.Error(err)
	}
	l[ShareVersion], l[GroupVersion] = 9, -1
	err := l.Check(V3_9_IV0)
	var all *multierror.Error
	if !errors.As(err, &all) || len(all.Errors) != 3 || !strings.Contains(err.Error(), "needs metadata.version 23 (4.0-IV1), not 3.9-IV0") {
		t.Errorf("%v", err)
	}
	if got := Defaults(Latest).Lowered(V4_0_IV1); got != Defaults(V4_0_IV1) {
		t.Errorf("%v", got)
	}
	if _, err := GroupVersion.CheckSupported(70000); err == nil {
		t.Error("level 70000 passes")
	}
}

func TestWrites(t *testing.T) {
	for v, want := range map[Version]RecordVersions{
		V0_8_0:   {1, 1, 0, None, None, None, None, 0},
		V2_0_IV1: {1, 1, 1, 0, None, None, None, 0},
		V3_3_IV3: {3, 1, 3, 0, None, None, None, 0},
		V4_0_IV3: {3, 1, 3, 1, 0, None, None, 0},
		V4_1_IV1: {4, 1, 3, 1, 0, None, None, 0},
		Latest:   {4, 1, 3, 1, 0, 0, 0, 0},
	} {
		got := Writes(v, Defaults(v))
		got.Fields = 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", v, got, want)
		}
	}
	w := Writes(V4_0_IV3, Defaults(V4_0_IV3))
	if w.Has(TopicID) || !w.Has(NextProducerID) || !Writes(Latest, Defaults(Latest)).Has(TopicID|NextProducerEpoch) || Writes(Latest, Levels{}).Has(NextProducerID) {
		t.Error("wrong fields")
	}
	for typ, want := range map[groupmeta.Type]int16{0: 0, 1: 3, 2: 3, 5: 0, 16: 0, 9: None, 10: None, 17: None, 18: None, 99: None} {
		if got := w.Of(typ); got != want {
			t.Errorf("%s: %d, want %d", typ, got, want)
		}
	}
}

// TestOwnReaderAgreesWithCodec: what the table says is read is what the codecs read.
func TestOwnReaderAgreesWithCodec(t *testing.T) {
	ours := Ours()
	for typ := range groupmeta.Type(32) {
		if ours.Knows(typ) != (typ.KeyName() != "") {
			t.Errorf("%s: known %t", typ, ours.Knows(typ))
		}
		if f := familyOf(typ); ours.Knows(typ) && typ != groupmeta.TypeLegacyOffsetCommit && ours.highest[f] != typ.HighestVersion() {
			t.Errorf("%s: up to version %d", typ, ours.highest[f])
		}
	}
}
