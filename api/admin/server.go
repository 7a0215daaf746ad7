package admin

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

// Coordinator is what the API asks: a coordinator.Node.
type Coordinator interface {
	Group(req group.Request, reply func(group.Response, error))
	EachGroup(req group.Request, reply func([]group.Response, error))
}

// Server is the gRPC server of the admin API, with reflection and health.
type Server struct {
	*grpc.Server
	health *health.Server
}

// New makes a server. It reports healthy until Drain.
func New(c Coordinator) *Server {
	s := &Server{grpc.NewServer(), health.NewServer()}
	adminpb.RegisterGroupsServer(s, &groups{ask: c})
	grpc_health_v1.RegisterHealthServer(s, s.health)
	reflection.Register(s)
	return s
}

// Drain reports unhealthy, waits for calls under way until ctx ends, and stops.
func (s *Server) Drain(ctx context.Context) {
	s.health.Shutdown()
	cut := context.AfterFunc(ctx, s.Stop)
	defer cut()
	s.GracefulStop()
}

// await waits for one answer of the coordinator.
func await[T any](ctx context.Context, ask func(reply func(T, error))) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ch := make(chan answer, 1)
	ask(func(value T, err error) { ch <- answer{value, err} })
	select {
	case a := <-ch:
		return a.value, statusOf(a.err)
	case <-ctx.Done():
		var none T
		return none, status.FromContextError(ctx.Err()).Err()
	}
}

// statusOf is where the coordinator's errors become gRPC's.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coordinator.ErrLoading), errors.Is(err, coordinator.ErrNotCoordinator):
		return status.Error(codes.Unavailable, err.Error())
	default:
		return status.Error(codes.Internal, err.Error())
	}
}
