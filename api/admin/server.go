package admin

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// Coordinator is what the API asks: a coordinator.Node.
type Coordinator interface {
	Group(req group.Request, reply func(group.Response, error))
	EachGroup(req group.Request, reply func([]group.Response, error))
	// Watch signals that a group may have changed.
	Watch(id string) (changed <-chan struct{}, stop func())
	Txn(req txn.Request, reply func(txn.Response, error))
	EachTxn(req txn.Request, reply func([]txn.Response, error))
	CommitInTxn(r coordinator.TxnCommit, reply func(group.TxnCommitted, error))
}

// Server is the gRPC server of the admin API, with reflection and health.
type Server struct {
	*grpc.Server
	health   *health.Server
	draining chan struct{}
}

// MaxMessage bounds a request and an answer: a plan of a million partitions.
const MaxMessage = 128 << 20

// Options are what a server tells of.
type Options struct {
	Coordinator Coordinator
	Versions    Versions
	Broker      *Broker
	Node        *adminpb.DescribeNodeResponse
}

// New makes a server. It reports healthy until Drain.
func New(o Options) *Server {
	s := &Server{
		Server: grpc.NewServer(
			grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
			// Who watches and is gone without a word is noticed.
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		),
		health:   health.NewServer(),
		draining: make(chan struct{}),
	}
	adminpb.RegisterGroupsServer(s, &groups{ask: o.Coordinator, broker: o.Broker, draining: s.draining, watching: make(chan struct{}, maxWatching)})
	adminpb.RegisterOffsetsServer(s, &offsets{ask: o.Coordinator, broker: o.Broker})
	adminpb.RegisterTransactionsServer(s, &transactions{ask: o.Coordinator, broker: o.Broker})
	adminpb.RegisterVersionsServer(s, &versions{of: o.Versions, draining: s.draining})
	adminpb.RegisterNodeServer(s, &node{told: o.Node})
	grpc_health_v1.RegisterHealthServer(s, s.health)
	reflection.Register(s)
	return s
}

// Drain reports unhealthy, ends the streams, waits for calls under way until ctx
// ends, and stops.
func (s *Server) Drain(ctx context.Context) {
	s.health.Shutdown()
	close(s.draining)
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

// askOne asks the shard of a group.
func askOne[T any](ctx context.Context, c Coordinator, req group.Request) (T, error) {
	r, err := await(ctx, func(reply func(group.Response, error)) { c.Group(req, reply) })
	if err != nil {
		var none T
		return none, err
	}
	return r.(T), nil
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

type node struct {
	adminpb.UnimplementedNodeServer
	told *adminpb.DescribeNodeResponse
}

// DescribeNode tells what does not change while the process runs.
func (n *node) DescribeNode(context.Context, *adminpb.DescribeNodeRequest) (*adminpb.DescribeNodeResponse, error) {
	return n.told, nil
}
