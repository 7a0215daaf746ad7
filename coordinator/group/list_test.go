package group

import (
	"strings"
	"testing"
)

// Kafka trims filters of states, and not those of types (internal/difftest).
func TestFilters(t *testing.T) {
	for _, tc := range []struct {
		filter []string
		trim   func(string) string
		pass   bool
	}{
		{nil, asItIs, true},
		{[]string{""}, asItIs, false},
		{[]string{" sTable "}, strings.TrimSpace, true},
		{[]string{"sTable "}, asItIs, false},
		{[]string{"x", "STABLE"}, asItIs, true},
	} {
		if got := passes(tc.filter, "Stable", tc.trim); got != tc.pass {
			t.Errorf("%q passes Stable: %v", tc.filter, got)
		}
	}
}
