package main

import (
	"errors"
	"fmt"
	"io"
)

// verdict compares the phases: p99 with and without the misbehaving ones, memory early and late.
func (p plan) verdict(w io.Writer, phases []phase) error {
	return errors.Join(p.latency(w, phases), memory(w, phases))
}

// latency takes the median over rounds of what p99 was in one phase by what it was in the one
// before, so that what else happens to the machine over minutes is in both.
func (p plan) latency(w io.Writer, phases []phase) (err error) {
	for k := range kinds {
		var calm, bad, ratios []float64
		for i := 0; i+1 < len(phases); i += 2 {
			c, b := phases[i].tally.quantiles(0.99)[k], phases[i+1].tally.quantiles(0.99)[k]
			calm, bad = append(calm, c), append(bad, b)
			if c > 0 {
				ratios = append(ratios, b/c)
			}
		}
		ratio := median(ratios)
		fmt.Fprintf(w, "p99 of a %s: %.2f ms without, %.2f ms with (medians); %+.0f %% (median of rounds)\n", k, median(calm), median(bad), 100*(ratio-1))
		if p.within > 0 && ratio > 1+p.within {
			err = errors.Join(err, fmt.Errorf("soak: p99 of a %s is %.0f %% higher with the misbehaving ones; %.0f %% are allowed", k, 100*(ratio-1), 100*p.within))
		}
	}
	var late []uint32
	for _, ph := range phases {
		late = append(late, ph.tally.behind...)
	}
	fmt.Fprintf(w, "requests that left late: %d, their p99 %.2f ms\n", len(late), quantile(late, 0.99))
	return err
}

// memory compares the heap after a collection, early and late. The first round is not looked
// at: pools and caches fill in it.
func memory(w io.Writer, phases []phase) error {
	third := len(phases) / 3
	if third < 2 {
		return nil
	}
	heap := func(of []phase) float64 {
		var all []float64
		for _, ph := range of {
			all = append(all, ph.after.heap)
		}
		return median(all)
	}
	early, late := heap(phases[2:2+third]), heap(phases[len(phases)-third:])
	fmt.Fprintf(w, "heap after a collection: %.1f MB early, %.1f MB late; RSS %.0f MB at last\n", early, late, phases[len(phases)-1].peak.rss)
	const more = 1.1
	if late > early*more+4 {
		return fmt.Errorf("soak: a leak: the heap grew from %.1f MB to %.1f MB", early, late)
	}
	return nil
}
