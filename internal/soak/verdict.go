package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// verdict compares the phases: p99 with and without the misbehaving ones, memory early and late.
func (p plan) verdict(w io.Writer, phases []phase) error {
	return errors.Join(p.latency(w, phases), memory(w, phases))
}

// latency takes the median over rounds of what p99 was in a phase by what it was in the calm one
// of the same round, so that what else happens to the machine over minutes is in both.
func (p plan) latency(w io.Writer, phases []phase) (err error) {
	for k := range kinds {
		var p99 [companies][]float64
		var machine, kcoord []float64 // what each is to blame for, as ratios
		for round := range slices.Chunk(phases, int(companies)) {
			for with, ph := range round {
				p99[with] = append(p99[with], ph.tally.quantiles(0.99)[k])
			}
			i := len(machine)
			machine = append(machine, ratio(p99[elsewhere][i], p99[calm][i]))
			kcoord = append(kcoord, ratio(p99[beside][i], p99[calm][i]))
		}
		fmt.Fprintf(w, "p99 of a %s: %.2f ms without, %.2f ms with them at another kcoord, %.2f ms with them (medians); %+.0f %%, %+.0f %% (medians of rounds)\n",
			k, median(p99[calm]), median(p99[elsewhere]), median(p99[beside]), 100*(median(machine)-1), 100*(median(kcoord)-1))
		if higher := median(kcoord) - 1; p.within > 0 && higher > p.within {
			err = errors.Join(err, fmt.Errorf("soak: p99 of a %s is %.0f %% higher with the misbehaving ones; %.0f %% are allowed", k, 100*higher, 100*p.within))
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
	const round = int(companies)
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
	early, late := heap(phases[round:round+third]), heap(phases[len(phases)-third:])
	fmt.Fprintf(w, "heap after a collection: %.1f MB early, %.1f MB late; RSS %.0f MB at last\n", early, late, phases[len(phases)-1].peak.rss)
	const more = 1.1
	if late > early*more+4 {
		return fmt.Errorf("soak: a leak: the heap grew from %.1f MB to %.1f MB", early, late)
	}
	return nil
}

// ratio of two latencies; 1 where nothing was measured.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return a / b
}
