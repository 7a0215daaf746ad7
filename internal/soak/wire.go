package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions that are spoken: the newest that name topics.
const (
	commitVersion = 9
	fetchVersion  = 9
	joinVersion   = 9
	syncVersion   = 5
	beatVersion   = 4
)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("soak"))

// wire is a connection on which requests are made one after the other.
type wire struct {
	net.Conn
	in *bufio.Reader
}

// patience bounds what is waited for an answer of a server that is well.
const patience = time.Minute

func dial(addr string) (*wire, error) {
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, fmt.Errorf("soak: connecting: %w", err)
	}
	return &wire{nc, bufio.NewReaderSize(nc, 512)}, nil
}

// send writes a request.
func (w *wire) send(req kmsg.Request) error {
	_, err := w.Write(formatter.AppendRequest(nil, req, 1))
	return err
}

// do makes a request and waits for its answer.
func do[T kmsg.Response](w *wire, req kmsg.Request, resp T) (T, error) {
	if err := w.SetDeadline(time.Now().Add(patience)); err != nil {
		return resp, err
	}
	if err := w.send(req); err != nil {
		return resp, err
	}
	b, err := answer(w.in)
	if err != nil {
		return resp, err
	}
	return resp, parse(b, req.GetVersion(), resp)
}

// answer reads one frame.
func answer(in *bufio.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(in, b)
	return b, err
}

// parse reads an answer behind its correlation id.
func parse(b []byte, version int16, resp kmsg.Response) error {
	resp.SetVersion(version)
	head := 4
	if resp.IsFlexible() && resp.Key() != 18 {
		head++ // no tags
	}
	if len(b) < head {
		return errors.New("soak: an answer without a header")
	}
	return resp.ReadFrom(b[head:])
}

// failed turns an error code into an error.
func failed(code int16) error { return kerr.ErrorForCode(code) }

// joinRequest is of a consumer.
func joinRequest(group, member string, session time.Duration) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = joinVersion, group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(session.Milliseconds())
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	req.Protocols = append(req.Protocols, protocol)
	return req
}

// syncRequest is of a member; the leader's has assignments.
func syncRequest(group, member string, generation int32, members []kmsg.JoinGroupResponseMember) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = syncVersion, group, member, generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for _, m := range members {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = m.MemberID, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return req
}

// commitRequest commits one offset for each of some partitions of a topic.
func commitRequest(group, member string, generation int32, topic string, from, n int, offset int64, metadata *string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation = commitVersion, group, member, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	for i := range n {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = int32(from+i), offset, metadata
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// fetchRequest asks for some partitions' offsets of a group; n 0: for all.
func fetchRequest(group, topic string, from, n int) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = fetchVersion
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	if n > 0 {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic = topic
		for i := range n {
			t.Partitions = append(t.Partitions, int32(from+i))
		}
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	return req
}
