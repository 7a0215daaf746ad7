package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// stranger is a client that knows nothing but what reflection tells, as grpcurl.
type stranger struct {
	t     *testing.T
	conn  *grpc.ClientConn
	files *protoregistry.Files
}

func newStranger(t *testing.T, conn *grpc.ClientConn) *stranger {
	t.Helper()
	s := &stranger{t, conn, &protoregistry.Files{}}
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"Offsets", "Transactions"} { // one of each file, those that others import first
		ask := &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "kcoord.admin.v1." + service}
		if err := stream.Send(&reflection.ServerReflectionRequest{MessageRequest: ask}); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range resp.GetFileDescriptorResponse().GetFileDescriptorProto() {
			var fd descriptorpb.FileDescriptorProto
			if err := proto.Unmarshal(raw, &fd); err != nil {
				t.Fatal(err)
			}
			if _, err := s.files.FindFileByPath(fd.GetName()); err == nil {
				continue
			}
			file, err := protodesc.NewFile(&fd, s.files)
			if err == nil {
				err = s.files.RegisterFile(file)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stranger) method(name string) protoreflect.MethodDescriptor {
	service, method, _ := strings.Cut(name, "/")
	d, err := s.files.FindDescriptorByName(protoreflect.FullName("kcoord.admin.v1." + service))
	if err != nil {
		s.t.Fatal(err)
	}
	return d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
}

func (s *stranger) request(m protoreflect.MethodDescriptor, text string) *dynamicpb.Message {
	req := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal([]byte(text), req); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return req
}

// try calls "Service/Method" with JSON.
func (s *stranger) try(name, text string) (string, error) {
	s.t.Helper()
	m := s.method(name)
	resp := dynamicpb.NewMessage(m.Output())
	err := s.conn.Invoke(s.t.Context(), "/kcoord.admin.v1."+name, s.request(m, text), resp)
	return shown(s.t, resp), err
}

func (s *stranger) call(name, text string) string {
	s.t.Helper()
	resp, err := s.try(name, text)
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, text, err)
	}
	return resp
}

// refused is a call that has to fail; it returns the status, and its details as JSON.
func (s *stranger) refused(name, text string) (st *status.Status, details string) {
	s.t.Helper()
	resp, err := s.try(name, text)
	st = status.Convert(err)
	if err == nil {
		s.t.Fatalf("%s %s: %s", name, text, resp)
	}
	for _, d := range st.Proto().GetDetails() {
		desc, err := s.files.FindDescriptorByName(d.MessageName())
		if err != nil {
			s.t.Fatal(err)
		}
		msg := dynamicpb.NewMessage(desc.(protoreflect.MessageDescriptor))
		if err := proto.Unmarshal(d.GetValue(), msg); err != nil {
			s.t.Fatal(err)
		}
		details += string(d.MessageName().Name()) + shown(s.t, msg)
	}
	return st, details
}

// watch reads a stream.
func (s *stranger) watch(ctx context.Context, text string) func() (string, error) {
	s.t.Helper()
	m := s.method("Groups/WatchGroup")
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/kcoord.admin.v1.Groups/WatchGroup")
	if err == nil {
		err = stream.SendMsg(s.request(m, text))
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return func() (string, error) {
		resp := dynamicpb.NewMessage(m.Output())
		if err := stream.RecvMsg(resp); err != nil {
			return "", err
		}
		return shown(s.t, resp), nil
	}
}

// shown is a message in JSON without its spaces, of which protojson puts random ones.
func shown(t *testing.T, m proto.Message) string {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReflectionTellsOfAll(t *testing.T) {
	s := newStranger(t, dial(t, New(Options{Coordinator: lost{}})))
	for name, methods := range map[string][]string{
		"Node":    {"DescribeNode"},
		"Groups":  {"ListGroups", "DescribeGroups", "DeleteGroup", "WatchGroup", "ListQuarantined"},
		"Offsets": {"ListOffsets", "PlanOffsets", "ApplyOffsets"},
		"Transactions": {
			"ListTransactions", "DescribeTransactions", "PlanAbort", "ApplyAbort", "FindHanging", "ExplainTransaction", "ListQuarantinedTransactions", "SendOffsetsToTransaction",
		},
	} {
		d, err := s.files.FindDescriptorByName(protoreflect.FullName("kcoord.admin.v1." + name))
		if err != nil {
			t.Fatal(err)
		}
		ms := d.(protoreflect.ServiceDescriptor).Methods()
		var told []string
		for i := range ms.Len() {
			told = append(told, string(ms.Get(i).Name()))
		}
		if !slices.Equal(told, methods) {
			t.Errorf("%s: %v", name, told)
		}
	}
}
