package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

func (d *demo) join(ctx context.Context) error {
	d.title("Three franz-go consumers join the group %s.", group)
	d.ledger = newLedger()
	for _, name := range memberNames {
		m, err := newMember(name, d.server.address, d.ledger)
		if err != nil {
			return err
		}
		d.members = append(d.members, m)
	}
	err := until(ctx, func() bool {
		for _, m := range d.members {
			if m.owned() != partitions/len(d.members) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("demo: the group did not share out its partitions: %w", err)
	}
	ids, generation := d.identities()
	d.detail("Generation %d; each has %d partitions. Their ids:", generation, partitions/len(d.members))
	for _, id := range ids {
		d.detail("  %s", id)
	}
	return nil
}

func (d *demo) consume(ctx context.Context) error {
	d.title("They consume, and commit every %d records.", perPoll)
	d.ledger.release()
	err := until(ctx, func() bool {
		acked, _ := d.ledger.positions()
		return !slices.Contains(acked[:], 0)
	})
	if err != nil {
		return fmt.Errorf("demo: the members do not commit: %w", err)
	}
	n, _ := d.ledger.counts()
	d.detail("%d commits are acknowledged, each after it was synced to disk.", n)
	return nil
}

// crash kills the server while a commit is in flight, and stops the members'
// commits before it is back.
func (d *demo) crash(ctx context.Context) error {
	d.title("Kill kcoord with SIGKILL while commits are in flight.")
	err := until(ctx, func() bool { _, n := d.ledger.counts(); return n > 0 })
	if err != nil {
		return fmt.Errorf("demo: no commit is in flight: %w", err)
	}
	d.server.kill()
	d.ledger.hold()
	_, flying := d.ledger.counts()
	for _, m := range d.members {
		m.dropCommit()
	}
	if err := until(ctx, func() bool { _, n := d.ledger.counts(); return n == 0 }); err != nil {
		return fmt.Errorf("demo: a commit does not end: %w", err)
	}
	n, _ := d.ledger.counts()
	d.detail("It is dead: %d commits were acknowledged, %d in flight.", n, flying)
	return nil
}

func (d *demo) restart(ctx context.Context) error {
	d.title("Start it again on the same folder.")
	took, err := d.server.start(ctx)
	if err != nil {
		return err
	}
	d.detail("It answers after %s.", took)
	return d.connect()
}

// compare looks whether each offset is the last acknowledged one, or one that
// was in flight after it.
func (d *demo) compare(ctx context.Context) error {
	d.title("Compare its offsets with those that were acknowledged before the kill.")
	acked, sent := d.ledger.positions()
	committed, err := d.admin.FetchOffsets(ctx, group)
	if err != nil {
		return fmt.Errorf("demo: fetching the offsets: %w", err)
	}
	var shown []string
	for p := range acked {
		at := int64(0) // where nothing is committed
		if o, ok := committed.Lookup(topic, int32(p)); ok {
			at = o.At
		}
		if at < acked[p] || at > sent[p] {
			return fmt.Errorf("demo: partition %d is at offset %d; acknowledged was %d, sent %d", p, at, acked[p], sent[p])
		}
		shown = append(shown, fmt.Sprintf("%d≥%d", at, acked[p]))
	}
	d.detail("Committed≥acknowledged: %s.", strings.Join(shown, " "))
	return nil
}

// goOn lets the same members consume more, in the generation that they are in.
func (d *demo) goOn(ctx context.Context) error {
	d.title("The group goes on: write more, and let the same members consume it.")
	before, generation := d.identities()
	for _, m := range d.members {
		m.allowCommits()
	}
	d.ledger.release()
	if err := d.write(ctx, 600); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return d.ledger.allCommitted(d.written) }); err != nil {
		return fmt.Errorf("demo: the group does not go on after the restart: %w", err)
	}
	if err := d.ledger.onceEach(d.written); err != nil {
		return err
	}
	after, now := d.identities()
	if now != generation || strings.Join(before, " ") != strings.Join(after, " ") {
		return fmt.Errorf("demo: the group rebalanced: generation %d became %d", generation, now)
	}
	d.detail("All %d records consumed, each once, and all offsets committed.", d.written)
	d.detail("Same members, still generation %d: nobody had to rejoin.", now)
	return nil
}

// identities are the ids that the members have in the group, and its generation.
func (d *demo) identities() (ids []string, generation int32) {
	for _, m := range d.members {
		id, g := m.client.GroupMetadata()
		ids = append(ids, id)
		generation = max(generation, g)
	}
	return ids, generation
}

// until waits until something holds. It asks now and then, since it waits for
// other processes.
func until(ctx context.Context, holds func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}
