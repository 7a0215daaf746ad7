package metadataversion

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kcoord/kcoord/internal/table"
)

// Parse reads a version as operators write it: a name (3.4-IV0), a release, which stands for its last version, with or
// without a patch number (3.4, 3.4.1), the name in Kafka's sources (IBP_3_4_IV0), or a feature level (8).
func Parse(s string) (Version, error) {
	t, err := ParseTarget(s)
	return t.Version, err
}

// ParseTarget reads a version like [Parse] and keeps the patch number, which decides what the release tolerates. Features
// are at the version's defaults.
func ParseTarget(s string) (Target, error) {
	text := strings.TrimSpace(s)
	if level, err := strconv.ParseInt(text, 10, 32); err == nil {
		if v, ok := FromLevel(int16(min(level, 1<<15-1))); ok && level > 0 {
			return TargetOf(v), nil
		}
		return Target{}, fmt.Errorf("no metadata.version has level %d: use %d to %d, or a name such as %s", level, LowestLevel.Level(), Latest.Level(), Latest)
	}
	name, patch := split(fromSource(text))
	if v, ok := byName(name); ok {
		t := TargetOf(v)
		t.Release.Patch = patch
		return t, nil
	}
	return Target{}, fmt.Errorf("metadata.version %q is not known: the nearest are %s (kcoord versions lists all)", table.Fit(s, 40), strings.Join(nearest(name), ", "))
}

// fromSource turns IBP_3_4_IV0 into 3.4-IV0.
func fromSource(s string) string {
	upper := strings.ToUpper(s)
	rest, ok := strings.CutPrefix(upper, "IBP_")
	if !ok {
		return strings.Replace(s, "-iv", "-IV", 1)
	}
	number, iv, ok := strings.Cut(rest, "_IV")
	if ok {
		iv = "-IV" + iv
	}
	return strings.ReplaceAll(number, "_", ".") + iv
}

// split takes a release's patch number off, as Kafka's fromVersionString does: what follows the second number, or the
// third where the first is 0, may be anything that starts with a digit (3.9.1-SNAPSHOT).
func split(s string) (name string, patch int) {
	parts := strings.Split(s, ".")
	n := 2
	if parts[0] == "0" {
		n = 3
	}
	if len(parts) <= n {
		return s, unknownPatch
	}
	digits := parts[n]
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	patch, err := strconv.Atoi(digits)
	if err != nil || patch > 1<<15 {
		return s, unknownPatch
	}
	return strings.Join(parts[:n], "."), patch
}

// byName finds a name, or the last version of a release.
func byName(name string) (Version, bool) {
	for v := Latest; v >= Lowest; v-- {
		if versions[v].name == name || v.Release() == name {
			return v, true
		}
	}
	return 0, false
}

// nearest are up to four names that the writer of an unknown one may have meant: the versions of that release, else the
// last ones of the releases before and after it, else the bounds.
func nearest(name string) []string {
	release, _, _ := strings.Cut(name, "-")
	if v, ok := byName(release); ok {
		var names []string
		for ; v >= Lowest && v.Release() == release && len(names) < 4; v-- {
			names = append([]string{v.String()}, names...)
		}
		return names
	}
	want, ok := order(release)
	if !ok {
		return []string{Latest.String(), LowestOfKRaft4.String()}
	}
	var before, after Version
	for v := range All() {
		switch at, _ := order(v.Release()); {
		case at < want:
			before = v
		case after == 0:
			after = v.last()
		}
	}
	var names []string
	for _, v := range []Version{before, after} {
		if v.Known() {
			names = append(names, v.String())
		}
	}
	return names
}

// order makes releases' numbers comparable.
func order(release string) (int, bool) {
	n := 0
	parts := strings.Split(release, ".")
	for i := range 3 {
		part := 0
		if i < len(parts) {
			var err error
			if part, err = strconv.Atoi(parts[i]); err != nil || part < 0 || part > 999 {
				return 0, false
			}
		}
		n = n*1000 + part
	}
	return n, true
}
