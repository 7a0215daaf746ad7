package metadataversion

import (
	"fmt"
	"io"
	"strings"
)

// WriteTable writes all versions, one a line, for people: level, name, release, whether it is backward compatible, which
// records it changes, and below the reasons of those that are not.
func WriteTable(w io.Writer) error {
	var b strings.Builder
	const row = "%5s  %-11s %-8s %-10s %s\n"
	fmt.Fprintf(&b, row, "LEVEL", "NAME", "RELEASE", "COMPATIBLE", "RECORDS THAT CHANGE")
	for v := range All() {
		level, compatible, changes := "-", "yes", "-"
		if v.Level() != None {
			level = fmt.Sprint(v.Level())
		}
		if !v.IsBackwardCompatible() {
			compatible = "no"
		}
		if all := describe(v); len(all) > 0 {
			changes = strings.Join(all, "; ")
		}
		fmt.Fprintf(&b, row, level, v, v.Release(), compatible, changes)
		for _, why := range v.WhyNotCompatible() {
			fmt.Fprintf(&b, "%39s%s\n", "", "  "+why)
		}
	}
	b.WriteString("\nCompatible is about the coordinators' records: whether the version before can go on with them (KIP-915).\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func describe(v Version) []string {
	var all []string
	for _, c := range v.Changes() {
		s := c.String()
		if c.Level > 0 {
			s += fmt.Sprintf(" (%s %d)", c.Feature, c.Level)
		}
		all = append(all, s)
	}
	return all
}
