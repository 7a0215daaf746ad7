package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/internal/table"
)

// tp names a partition.
type tp struct {
	topic     string
	partition int32
}

// offset is a committed one, wherever it is kept.
type offset struct {
	at       int64
	epoch    int32
	metadata string
}

// copying is what is to be done for one group so that the target has what the source has.
type copying struct {
	plan   *adminpb.OffsetsPlan
	source string // the group's state there
	same   int
	ahead  int // the target has a later offset, which is kept
}

// compare makes a plan of what differs. An offset of the target that is ahead is
// newer, as a rule, and is kept unless overwrite.
func compare(id, state string, source, target map[tp]offset, overwrite bool) copying {
	c := copying{plan: &adminpb.OffsetsPlan{Group: id, State: state}, source: state}
	for _, at := range slices.SortedFunc(maps.Keys(source), func(a, b tp) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	}) {
		from, to := source[at], offset{at: -1}
		has, there := target[at]
		if there {
			to = has
		}
		switch {
		case from == to:
			c.same++
			continue
		case from.at < to.at && !overwrite:
			c.ahead++
			continue
		}
		change := &adminpb.OffsetChange{Topic: at.topic, Partition: at.partition, New: &from.at, Metadata: from.metadata}
		if there {
			change.Current = &has.at
		}
		if from.epoch >= 0 {
			change.LeaderEpoch = &from.epoch
		}
		c.plan.Changes = append(c.plan.Changes, change)
	}
	return c
}

// showCopying shows what would be done, a line a group; for programs a plan a line.
func (a *adminFlags) showCopying(all []copying) error {
	if a.Output == "json" {
		for _, c := range all {
			if err := printJSON(c.plan); err != nil {
				return err
			}
		}
		return nil
	}
	t := table.New("GROUP", "STATE", ">SAME", ">AHEAD", ">TO COPY")
	active := false
	for _, c := range all {
		t.Row(c.plan.GetGroup(), c.source, strconv.Itoa(c.same), strconv.Itoa(c.ahead), strconv.Itoa(len(c.plan.GetChanges())))
		active = active || c.source != "" && c.source != "Empty" && c.source != "Dead"
	}
	if err := a.table(t, "there are no groups"); err != nil {
		return err
	}
	if active {
		fmt.Println("Groups that are not Empty move on: copy again when their members have stopped.")
	}
	return nil
}

func pending(all []copying) (offsets, groups int) {
	for _, c := range all {
		offsets += len(c.plan.GetChanges())
		if len(c.plan.GetChanges()) > 0 {
			groups++
		}
	}
	return offsets, groups
}
