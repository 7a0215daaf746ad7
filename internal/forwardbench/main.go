package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// bench is one kind of traffic; run moves about as many bytes as it is told to
// and returns how many it did.
type bench struct {
	name string
	run  func(ctx context.Context, addr string, bytes int) (int, error)
}

func main() {
	direct := flag.String("direct", "", "address of the broker")
	through := flag.String("through", "", "address of kcoord in front of it")
	megabytes := flag.Int("mb", 512, "megabytes a round")
	rounds := flag.Int("rounds", 5, "rounds, each direct and through")
	brokerPID := flag.Int("broker-pid", 0, "process of the broker, for its CPU time")
	kcoordPID := flag.Int("kcoord-pid", 0, "process of kcoord, for its CPU time")
	flag.Parse()
	if err := measure(*direct, *through, *megabytes<<20, *rounds, pids{*brokerPID, *kcoordPID, os.Getpid()}); err != nil {
		fmt.Fprintln(os.Stderr, "forwardbench:", err)
		os.Exit(1)
	}
}

// pids are of broker, kcoord and this process.
type pids [3]int

func measure(direct, through string, bytes, rounds int, of pids) error {
	ctx := context.Background()
	t, err := prepare(ctx, direct)
	if err != nil {
		return err
	}
	fmt.Printf("%-20s %12s %12s %8s   %s\n", "", "direct MB/s", "through", "ratio", "CPU ms/GB direct: broker client; through: broker client kcoord")
	for _, b := range t.benches() {
		var rates [2][]float64
		var cpu [2][3]float64
		var moved [2]int
		for round := range rounds + 1 { // the first warms up
			for side, addr := range []string{direct, through} {
				before, at := of.cpu(), time.Now()
				n, err := b.run(ctx, addr, bytes)
				if err != nil {
					return fmt.Errorf("%s at %s: %w", b.name, addr, err)
				}
				took := time.Since(at)
				if round == 0 {
					continue
				}
				rates[side] = append(rates[side], float64(n)/1e6/took.Seconds())
				moved[side] += n
				for i, after := range of.cpu() {
					cpu[side][i] += after - before[i]
				}
			}
		}
		per := func(side, process int) float64 { return cpu[side][process] * 1000 / (float64(moved[side]) / 1e9) }
		d, th := median(rates[0]), median(rates[1])
		fmt.Printf("%-20s %12.0f %12.0f %7.0f%%   %.0f %.0f; %.0f %.0f %.0f\n", b.name, d, th, 100*th/d,
			per(0, 0), per(0, 2), per(1, 0), per(1, 2), per(1, 1))
	}
	return nil
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
