package group

import (
	"fmt"
	"testing"
)

// BenchmarkCensus is what a scrape costs a shard of 20,000 groups, under its lock.
func BenchmarkCensus(b *testing.B) {
	m := New(Config{}, &counting{})
	for i := range 20_000 {
		m.Known(fmt.Sprint("group-", i), nil, false)
	}
	for b.Loop() {
		m.Census(Census{})
	}
}
