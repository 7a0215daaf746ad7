package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	partitions = 4
	first      = 1000
	more       = 100
)

// library is a client library's part in the job.
type library interface {
	createTopic(ctx context.Context) error
	// produce sends the numbers from lo up to hi, to the partitions in turns.
	produce(ctx context.Context, lo, hi int) error
	// consume joins the group, tells how many partitions it gets, notes and commits
	// records until ctx ends, and leaves.
	consume(ctx context.Context, assigned, note func(int)) error
	committed(ctx context.Context) (total int64, err error)
	close()
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "groupjob franz|sarama HOST:PORT NAME")
		os.Exit(2)
	}
	open := map[string]func(addr, name string) (library, error){"franz": newFranz, "sarama": newSarama}[os.Args[1]]
	if open == nil {
		fmt.Fprintln(os.Stderr, "groupjob: no library", os.Args[1])
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l, err := open(os.Args[2], os.Args[3])
	if err == nil {
		err = job(ctx, l)
		l.close()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	fmt.Printf("%s: ok\n", os.Args[1])
}

func job(ctx context.Context, l library) error {
	if err := l.createTopic(ctx); err != nil {
		return fmt.Errorf("creating the topic: %w", err)
	}
	if _, err := group(ctx, l, 2, 0, first); err != nil {
		return fmt.Errorf("two members: %w", err)
	}
	lowest, err := group(ctx, l, 1, first, first+more)
	if err != nil {
		return fmt.Errorf("joining again: %w", err)
	}
	if lowest != first {
		return fmt.Errorf("record %d was read again", lowest)
	}
	total, err := l.committed(ctx)
	if err == nil && total != first+more {
		err = fmt.Errorf("the offsets add up to %d", total)
	}
	return err
}

// watch is what is known of the members at work.
type watch struct {
	mu     sync.Mutex
	has    map[int]int // partitions, by member
	seen   map[int]bool
	moved  chan struct{} // something has changed
	lowest int
}

func (w *watch) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// until waits until something holds.
func (w *watch) until(ctx context.Context, what string, holds func() bool) error {
	for {
		w.mu.Lock()
		ok := holds()
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-w.moved:
		case <-ctx.Done():
			return fmt.Errorf("not %s: %d records, partitions %v", what, len(w.seen), w.has)
		}
	}
}

// group lets members share the partitions, produces the numbers from lo up to hi
// and waits until all have come. It returns the lowest that came.
func group(ctx context.Context, l library, members, lo, hi int) (lowest int, err error) {
	consuming, enough := context.WithCancel(ctx)
	defer enough()
	w := &watch{has: map[int]int{}, seen: map[int]bool{}, moved: make(chan struct{}, 1), lowest: hi}
	var all sync.WaitGroup
	failed := make([]error, members)
	for i := range members {
		assigned := func(n int) { w.change(func() { w.has[i] = n }) }
		note := func(n int) { w.change(func() { w.seen[n], w.lowest = true, min(w.lowest, n) }) }
		all.Go(func() {
			if failed[i] = l.consume(consuming, assigned, note); failed[i] != nil {
				enough()
			}
		})
	}
	err = w.until(consuming, "shared out", func() bool {
		for i := range members {
			if w.has[i] != partitions/members {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = l.produce(ctx, lo, hi)
	}
	if err == nil {
		err = w.until(consuming, "all there", func() bool { return len(w.seen) == hi-lo })
	}
	enough()
	all.Wait()
	return w.lowest, errors.Join(append(failed, err)...)
}
