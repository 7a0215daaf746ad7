package admin

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/metadataversion"
)

// Versions keeps what is finalized: a coordinator.Node.
type Versions interface {
	Finalized() coordinator.Finalized
	Change(ctx context.Context, c coordinator.Change) (*coordinator.Changed, error)
	PlanDowngrade(ctx context.Context, to metadataversion.Target, progress func(coordinator.Progress)) (*metadataversion.Plan, error)
	Rewriting() (s coordinator.RewriteStatus, under bool)
}

type versions struct {
	adminpb.UnimplementedVersionsServer
	of       Versions
	draining chan struct{}
}

// tellEvery is how often it is told how far something is.
const tellEvery = 200 * time.Millisecond

// DescribeVersions tells what is finalized.
func (v *versions) DescribeVersions(context.Context, *adminpb.DescribeVersionsRequest) (*adminpb.DescribeVersionsResponse, error) {
	f := v.of.Finalized()
	resp := &adminpb.DescribeVersionsResponse{
		MetadataVersion: f.Version.String(), Level: int32(max(f.Version.Level(), 0)), Features: map[string]int32{}, Epoch: f.Epoch,
	}
	for _, feature := range metadataversion.Features() {
		resp.Features[feature.String()] = int32(f.Levels[feature])
	}
	if s, under := v.of.Rewriting(); s.To != "" {
		resp.Rewrite = rewriteOf(s, under)
	}
	return resp, nil
}

// below is a target to be downgraded to, with the features at most at its defaults.
func (v *versions) below(to string) (metadataversion.Target, error) {
	t, err := metadataversion.ParseTarget(to)
	if err != nil {
		return t, status.Error(codes.InvalidArgument, err.Error())
	}
	now := v.of.Finalized()
	if t.Version > now.Version {
		return t, status.Errorf(codes.InvalidArgument, "%s is above what is finalized, %s: kcoord upgrade --to %s goes there", t.Version, now.Version, t.Version)
	}
	return t.At(now.Levels.Lowered(t.Version)), nil
}

// PlanDowngrade plans.
func (v *versions) PlanDowngrade(req *adminpb.PlanDowngradeRequest, stream grpc.ServerStreamingServer[adminpb.PlanDowngradeResponse]) error {
	to, err := v.below(req.GetTo())
	if err != nil {
		return err
	}
	told := throttled(func(p *adminpb.PlanProgress) {
		_ = stream.Send(&adminpb.PlanDowngradeResponse{Step: &adminpb.PlanDowngradeResponse_Progress{Progress: p}}) // the plan fails next
	})
	plan, err := v.of.PlanDowngrade(stream.Context(), to, told)
	if err != nil {
		return changeStatus(stream.Context(), err)
	}
	return stream.Send(&adminpb.PlanDowngradeResponse{Step: &adminpb.PlanDowngradeResponse_Plan{Plan: planOf(plan)}})
}

// throttled tells of progress now and then.
func throttled(tell func(*adminpb.PlanProgress)) func(coordinator.Progress) {
	var last time.Time
	return func(p coordinator.Progress) {
		if now := time.Now(); now.Sub(last) >= tellEvery || p.Shards == p.Of {
			last = now
			tell(&adminpb.PlanProgress{ShardsDone: int32(p.Shards), Shards: int32(p.Of), Records: p.Records})
		}
	}
}

// Downgrade lowers the version, and then tells of the rewrite.
func (v *versions) Downgrade(req *adminpb.DowngradeRequest, stream grpc.ServerStreamingServer[adminpb.DowngradeResponse]) error {
	to, err := v.below(req.GetTo())
	if err != nil {
		return err
	}
	told := throttled(func(p *adminpb.PlanProgress) {
		_ = stream.Send(&adminpb.DowngradeResponse{Step: &adminpb.DowngradeResponse_Progress{Progress: p}})
	})
	done, err := v.of.Change(stream.Context(), coordinator.Change{To: to, Force: req.GetForce(), Progress: told})
	if err != nil {
		return changeStatus(stream.Context(), err)
	}
	started := &adminpb.DowngradeStarted{
		Checkpoint: done.Checkpoint, CheckpointBytes: done.CheckpointBytes, Report: done.Report, Unchanged: !done.Rewriting,
	}
	if err := stream.Send(&adminpb.DowngradeResponse{Step: &adminpb.DowngradeResponse_Started{Started: started}}); err != nil || started.Unchanged {
		return err
	}
	return v.follow(stream)
}

// follow tells how far the rewrite is until it has ended.
func (v *versions) follow(stream grpc.ServerStreamingServer[adminpb.DowngradeResponse]) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		s, under := v.of.Rewriting()
		if err := stream.Send(&adminpb.DowngradeResponse{Step: &adminpb.DowngradeResponse_Rewrite{Rewrite: rewriteOf(s, under)}}); err != nil || !under {
			return err
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-v.draining:
			return status.Error(codes.Unavailable, "kcoord is shutting down: the rewrite goes on when it is started again")
		}
	}
}

// Upgrade raises the version, and the features to its defaults.
func (v *versions) Upgrade(ctx context.Context, req *adminpb.UpgradeRequest) (*adminpb.UpgradeResponse, error) {
	t, err := metadataversion.ParseTarget(req.GetTo())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	now := v.of.Finalized()
	if t.Version < now.Version {
		return nil, status.Errorf(codes.InvalidArgument, "%s is below what is finalized, %s: kcoord downgrade --to %s goes there", t.Version, now.Version, t.Version)
	}
	to := metadataversion.TargetOf(t.Version)
	for f := range to.Levels {
		to.Levels[f] = max(to.Levels[f], now.Levels[f])
	}
	if _, err := v.of.Change(ctx, coordinator.Change{To: to}); err != nil {
		return nil, changeStatus(ctx, err)
	}
	return &adminpb.UpgradeResponse{From: now.Version.String(), To: t.Version.String()}, nil
}

// changeStatus is where errors of a change become gRPC's.
func changeStatus(ctx context.Context, err error) error {
	var lossy *coordinator.Lossy
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.As(err, &lossy):
		return refusedDowngrade(lossy.Plan)
	case errors.Is(err, coordinator.ErrRewriting), errors.Is(err, coordinator.ErrNoCheckpoint):
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
