package admin

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// lost is a coordinator that has lost its shards.
type lost struct{}

func (lost) Group(_ group.Request, reply func(group.Response, error)) {
	go reply(nil, coordinator.ErrNotCoordinator)
}

func (lost) EachGroup(_ group.Request, reply func([]group.Response, error)) {
	go reply(nil, errors.Join(errors.New("shard 7"), coordinator.ErrLoading))
}

func (lost) Txn(_ txn.Request, reply func(txn.Response, error)) {
	go reply(nil, coordinator.ErrNotCoordinator)
}

func (lost) EachTxn(_ txn.Request, reply func([]txn.Response, error)) {
	go reply(nil, coordinator.ErrLoading)
}

func (lost) CommitInTxn(_ coordinator.TxnCommit, reply func(group.TxnCommitted, error)) {
	go reply(group.TxnCommitted{}, coordinator.ErrNotCoordinator)
}

func (lost) Watch(string) (<-chan struct{}, func()) { return nil, func() {} }

func TestErrorsAreRetriable(t *testing.T) {
	api := adminpb.NewGroupsClient(dial(t, New(Options{Coordinator: lost{}})))
	_, err := api.ListGroups(t.Context(), &adminpb.ListGroupsRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a shard that loads: %v", err)
	}
	_, err = api.DescribeGroups(t.Context(), &adminpb.DescribeGroupsRequest{Groups: []string{"g"}})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a shard that was lost: %v", err)
	}
}

func TestHealthAndReflection(t *testing.T) {
	s := New(Options{Coordinator: lost{}})
	conn := dial(t, s)
	h, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v %v", h, err)
	}
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := &reflection.ServerReflectionRequest_ListServices{}
	if err := stream.Send(&reflection.ServerReflectionRequest{MessageRequest: list}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	if !slices.Contains(names, "kcoord.admin.v1.Groups") {
		t.Errorf("reflection tells of %v", names)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, s *Server) *grpc.ClientConn {
	l := bufconn.Listen(1 << 16)
	go func() { _ = s.Serve(l) }() // ends with Drain
	conn, err := grpc.NewClient("passthrough:///admin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if !s.drained() {
			s.Drain(ctx)
		}
	})
	return conn
}

func (s *Server) drained() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
