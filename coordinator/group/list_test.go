package group

import "testing"

// Kafka trims filters of states, and not those of types (internal/difftest).
func TestFilters(t *testing.T) {
	for _, tc := range []struct {
		filter []string
		trim   func(string) string
		pass   bool
	}{
		{nil, asItIs, true},
		{[]string{""}, asItIs, false},
		{[]string{" sTable "}, trimmed, true},
		{[]string{"\x00\tsTable\x1f"}, trimmed, true},
		{[]string{"Stable\u00a0"}, trimmed, false},
		{[]string{"\u017ftable"}, trimmed, false}, // a long s
		{[]string{"sTable "}, asItIs, false},
		{[]string{"x", "STABLE"}, asItIs, true},
	} {
		if got := passes(tc.filter, "Stable", tc.trim); got != tc.pass {
			t.Errorf("%q passes Stable: %v", tc.filter, got)
		}
	}
}
