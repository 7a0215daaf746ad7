package admin

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
)

// maxWatching bounds the streams.
const maxWatching = 1000

// WatchGroup sends what there is and then what changes. A signal says only that
// something may have changed; the group is then asked as by anybody, so that nothing
// is told which a crash could undo. Who does not read keeps this goroutine waiting, for
// which one signal waits in turn, and nobody else.
func (g *groups) WatchGroup(req *adminpb.WatchGroupRequest, stream grpc.ServerStreamingServer[adminpb.DescribedGroup]) error {
	select {
	case g.watching <- struct{}{}:
		defer func() { <-g.watching }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d groups are watched already", maxWatching)
	}
	changed, stop := g.ask.Watch(req.GetGroup())
	defer stop()
	var last *adminpb.DescribedGroup
	for {
		o, err := askOne[group.Observed](stream.Context(), g.ask, group.Observe{Group: req.GetGroup()})
		if err != nil {
			return err
		}
		if now := described(o); last == nil || !proto.Equal(now, last) {
			if err := stream.Send(now); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-g.draining:
			return status.Error(codes.Unavailable, "kcoord is shutting down")
		}
	}
}
