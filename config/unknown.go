package config

import (
	_ "embed"
	"fmt"
	"strings"
)

// brokerKeys are Kafka's keys that are not kcoord's: what KafkaConfig of Apache
// Kafka 4.4.0 defines without those of the table, and those that older brokers
// had. A name that ends with * stands for all that begin so.
//
//go:embed brokerkeys.txt
var brokerKeys string

var brokerNames, brokerPrefixes = func() (names map[string]bool, prefixes []string) {
	names = map[string]bool{}
	for line := range strings.Lines(brokerKeys) {
		name := strings.TrimSpace(line)
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			prefixes = append(prefixes, prefix)
		} else if name != "" && name[0] != '#' {
			names[name] = true
		}
	}
	return names, prefixes
}()

// isBrokers says whether a key is one of the broker's own.
func isBrokers(key string) bool {
	if brokerNames[key] {
		return true
	}
	for _, p := range brokerPrefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

func unknown(s Setting) error {
	if isBrokers(s.Key) {
		return fmt.Errorf("config: %s %s is a setting of the broker, which kcoord has no use for: leave it out", s.Key, s.From)
	}
	hint := "docs/configuration.md lists the keys"
	if near := nearest(s.Key); near != "" {
		hint = "did you mean " + near + "?"
	}
	return fmt.Errorf("config: unknown key %q %s: %s", s.Key, s.From, hint)
}

// nearest is the key with the fewest edits to name, if they are few.
func nearest(name string) string {
	best, at := "", max(2, len(name)/4)+1
	for i := range table {
		if d := edits(name, table[i].Name); d < at {
			best, at = table[i].Name, d
		}
	}
	return best
}

// edits counts the insertions, deletions, changes and swaps of neighbours that
// turn a into b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
