package metadataversion

import (
	"fmt"
	"io"
	"strings"
)

const (
	tableRow = "%5s  %-10s  %-7s  %-10s  %s\n"
	tableGap = 40 // where the last column starts
	tableEnd = 80
)

// WriteTable writes all versions for people, 80 columns wide: level, name, release, whether it is backward compatible,
// which records it changes, and for those that are not compatible why not.
func WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, tableRow, "LEVEL", "NAME", "RELEASE", "COMPATIBLE", "RECORDS THAT CHANGE, AND WHY NOT")
	for v := range All() {
		level, compatible := "-", "yes"
		if v.Level() != None {
			level = fmt.Sprint(v.Level())
		}
		if !v.IsBackwardCompatible() {
			compatible = "no"
		}
		said := append(describe(v), v.WhyNotCompatible()...)
		if len(said) == 0 {
			said = []string{"-"}
		}
		for _, one := range said {
			for _, line := range wrap(one, tableEnd-tableGap) {
				row := fmt.Sprintf(tableRow, level, v, v.Release(), compatible, line)
				if level == "" {
					row = strings.Repeat(" ", tableGap) + line + "\n"
				}
				b.WriteString(row)
				level, compatible = "", ""
			}
		}
	}
	b.WriteString("\nCompatible is about the coordinators' records: whether the version before can go\non with what this one writes (KIP-915).\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// describe tells of each change in a line.
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

// wrap breaks a text between words; lines after the first are indented.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
