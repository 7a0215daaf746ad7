package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/internal/table"
)

// copyFlags are those of import and export.
type copyFlags struct {
	Group     []string `sep:"none" placeholder:"GROUP" help:"Only this group. May be repeated."`
	Overwrite bool     `help:"Also where the offset there is ahead of the one here."`
	Yes       bool     `help:"Do it; else it is only shown what would be copied."`
}

func (f *copyFlags) wants(id string) bool { return len(f.Group) == 0 || slices.Contains(f.Group, id) }

type offsetsImportCommand struct {
	From string `required:"" placeholder:"HOST:PORT" help:"The broker: its own listener, not kcoord's."`
	copyFlags
}

// Run copies what the broker's own coordinator has into kcoord.
func (i *offsetsImportCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.copying(ctx, i.From, i.copyFlags, func(ctx context.Context, api api, b *ownCoordinator) ([]copying, error) {
		groups, err := b.groups(ctx, i.wants)
		if err != nil {
			return nil, err
		}
		var all []copying
		for _, g := range groups {
			theirs, err := b.committed(ctx, g.Group)
			if err != nil {
				return nil, err
			}
			ours, err := committedHere(ctx, api, g.Group)
			if err != nil {
				return nil, err
			}
			all = append(all, compare(g.Group, g.State, theirs, ours, i.Overwrite))
		}
		return all, nil
	}, func(ctx context.Context, api api, _ *ownCoordinator, plan *adminpb.OffsetsPlan) error {
		_, err := api.ApplyOffsets(ctx, plan)
		return a.explained(err)
	})
}

type offsetsExportCommand struct {
	To string `required:"" placeholder:"HOST:PORT" help:"The broker: its own listener, not kcoord's."`
	copyFlags
}

// Run copies what kcoord has into the broker's own coordinator.
func (e *offsetsExportCommand) Run(ctx context.Context, a *adminFlags) error {
	return a.copying(ctx, e.To, e.copyFlags, func(ctx context.Context, api api, b *ownCoordinator) ([]copying, error) {
		listed, err := api.ListGroups(ctx, &adminpb.ListGroupsRequest{})
		if err != nil {
			return nil, err
		}
		var all []copying
		for _, g := range listed.GetGroups() {
			if !e.wants(g.GetGroup()) {
				continue
			}
			ours, err := committedHere(ctx, api, g.GetGroup())
			if err != nil {
				return nil, err
			}
			theirs, err := b.committed(ctx, g.GetGroup())
			if err != nil {
				return nil, err
			}
			all = append(all, compare(g.GetGroup(), g.GetState(), ours, theirs, e.Overwrite))
		}
		return all, nil
	}, func(ctx context.Context, _ api, b *ownCoordinator, plan *adminpb.OffsetsPlan) error {
		return b.commit(ctx, plan)
	})
}

// copying plans, shows, and with --yes copies one group after the other. One that is
// refused keeps none of the others back.
func (a *adminFlags) copying(ctx context.Context, broker string, f copyFlags,
	plan func(context.Context, api, *ownCoordinator) ([]copying, error),
	do func(context.Context, api, *ownCoordinator, *adminpb.OffsetsPlan) error,
) error {
	return a.stay(ctx, func(ctx context.Context, api api) error {
		node, err := api.DescribeNode(ctx, &adminpb.DescribeNodeRequest{})
		if err != nil {
			return err
		}
		b, err := connectBroker(ctx, broker, node)
		if err != nil {
			return err
		}
		defer b.kgo.Close()
		all, err := plan(ctx, api, b)
		if err != nil {
			return err
		}
		for _, id := range f.Group {
			if !slices.ContainsFunc(all, func(c copying) bool { return c.plan.GetGroup() == id }) {
				return mistake{fmt.Errorf("there is no group %q to copy", id)}
			}
		}
		if err := a.showCopying(all); err != nil {
			return err
		}
		offsets, groups := pending(all)
		switch {
		case offsets == 0:
			return a.notYet("Nothing is left to copy.")
		case !f.Yes:
			return a.notYet(fmt.Sprintf("Nothing was copied. Copy %s with --yes.", copied(offsets, groups)))
		}
		var errs []error
		for _, c := range all {
			if len(c.plan.GetChanges()) == 0 {
				continue
			}
			if err := do(ctx, api, b, c.plan); err != nil {
				offsets -= len(c.plan.GetChanges())
				groups--
				errs = append(errs, err)
			}
		}
		return several(append(errs, a.notYet(fmt.Sprintf("Copied %s.", copied(offsets, groups)))))
	})
}

func copied(offsets, groups int) string {
	return table.Count(int64(offsets), "offset") + " of " + table.Count(int64(groups), "group")
}

// committedHere are the offsets that kcoord has.
func committedHere(ctx context.Context, api api, id string) (map[tp]offset, error) {
	resp, err := api.ListOffsets(ctx, &adminpb.ListOffsetsRequest{Group: id})
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	all := map[tp]offset{}
	for _, o := range resp.GetOffsets() {
		all[tp{o.GetTopic(), o.GetPartition()}] = offset{o.GetOffset(), o.GetLeaderEpoch(), o.GetMetadata()}
	}
	return all, nil
}

// groups are the broker's, but for those of a type that commits no offsets.
func (b *ownCoordinator) groups(ctx context.Context, wants func(string) bool) ([]kadm.ListedGroup, error) {
	if err := b.loaded(ctx); err != nil {
		return nil, err
	}
	listed, err := b.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("the groups of %s cannot be listed: %s", b.address, plain(err))
	}
	return slices.DeleteFunc(listed.Sorted(), func(g kadm.ListedGroup) bool { return g.GroupType == "share" || !wants(g.Group) }), nil
}

// loaded waits until every partition of the coordinator answers. One that has just
// started lists no groups, and no error either, until it has loaded them.
func (b *ownCoordinator) loaded(ctx context.Context) error {
	const topic = "__consumer_offsets"
	m, err := b.Metadata(ctx, topic)
	if err != nil {
		return fmt.Errorf("the partitions of %s on %s cannot be listed: %s", topic, b.address, plain(err))
	}
	partitions := len(m.Topics[topic].Partitions)
	var probes []string
	for i, found := 0, map[int]bool{}; len(found) < partitions; i++ {
		id := fmt.Sprint("kcoord-looks-for-partition-", i)
		if p := int(coordinator.ShardOf(id, partitions)); !found[p] {
			found[p] = true
			probes = append(probes, id)
		}
	}
	for id, answer := range b.FetchManyOffsets(ctx, probes...) {
		if answer.Err != nil {
			return fmt.Errorf("the coordinator on %s has not loaded partition %d of %s: %s; try again", b.address, coordinator.ShardOf(id, partitions), topic, plain(answer.Err))
		}
	}
	return nil
}

// committed are the offsets that the broker's coordinator has.
func (b *ownCoordinator) committed(ctx context.Context, id string) (map[tp]offset, error) {
	got, err := b.FetchOffsets(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("the offsets of %s on %s cannot be read: %s", id, b.address, plain(err))
	}
	all := map[tp]offset{}
	for topic, ps := range got {
		for p, o := range ps {
			if o.Err != nil {
				return nil, fmt.Errorf("the offset of %s for %s-%d on %s cannot be read: %s", id, topic, p, b.address, plain(o.Err))
			}
			if o.At >= 0 {
				all[tp{topic, p}] = offset{o.At, o.LeaderEpoch, o.Metadata}
			}
		}
	}
	return all, nil
}

// commit commits a plan's offsets as a consumer without a group does.
func (b *ownCoordinator) commit(ctx context.Context, plan *adminpb.OffsetsPlan) error {
	offsets := kadm.Offsets{}
	for _, c := range plan.GetChanges() {
		epoch := int32(-1)
		if c.LeaderEpoch != nil {
			epoch = c.GetLeaderEpoch()
		}
		offsets.Add(kadm.Offset{Topic: c.GetTopic(), Partition: c.GetPartition(), At: c.GetNew(), LeaderEpoch: epoch, Metadata: c.GetMetadata()})
	}
	done, err := b.CommitOffsets(ctx, plan.GetGroup(), offsets)
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return refusal{fmt.Errorf("%s does not take the offsets of %s (are its members still there?): %s", b.address, plan.GetGroup(), plain(err))}
	}
	return nil
}
