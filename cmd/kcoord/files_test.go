package main

import "testing"

func TestShareFiles(t *testing.T) {
	for limit, want := range map[int]files{
		0: {}, 64: {1, 64}, 300: {172, 64}, 1024: {768, 128}, 1 << 20: {1<<20 - 2000, 1000},
	} {
		if got := shareFiles(limit); got != want {
			t.Errorf("%d: %+v", limit, got)
		}
	}
}
