//go:build kafka

package difftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// target is one of the two coordinators, as one sequence sees it.
type target struct {
	addr  string
	conns []*conn
	// What ops refer to.
	members map[string]string // id → name
	slots   [slots]slot
	// The producers of the sequence's transactional ids, the latest last, and the names of producer ids.
	producers [txnIDs][]producer
	pids      map[int64]string
	ids       map[string][16]byte // of topics
	sequences map[log]int32       // what records a client has next
	// By which epoch of a coordinator the last marker was written.
	coordinatorEpoch int32
	// Kafka keeps the latest join and the latest sync of a member, and never answers those before.
	asked     map[string]int // by member: the op that waits
	forgotten map[int]bool
	own       [ownTopics]ownTopic // the sequence's topics
	past      [][16]byte          // the ids of those that are no more
	holds     map[int]bool        // ops with others behind them on their connection
	stuck     bool                // of which one is forgotten: kcoord goes on there, and Kafka does not
}

// asker names who waits for an answer of which kind, "" where Kafka forgets nothing.
func asker(req kmsg.Request) string {
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		if r.MemberID != "" {
			return "join " + r.Group + " " + r.MemberID
		}
	case *kmsg.SyncGroupRequest:
		return "sync " + r.Group + " " + r.MemberID
	}
	return ""
}

func (t *target) parks(op int, req kmsg.Request) {
	who := asker(req)
	if who == "" {
		return
	}
	if before, ok := t.asked[who]; ok {
		t.forget(before)
	}
	t.asked[who] = op
}

// forget notes that Kafka never answers an op, nor what is behind it on its connection.
func (t *target) forget(op int) {
	t.forgotten[op] = true
	t.stuck = t.stuck || t.holds[op]
}

// slot is a client: what it was told last.
type slot struct {
	member     string
	generation int32
	protocol   *string
}

// conn carries one request at a time, as Kafka takes one at a time from it.
type conn struct {
	nc   net.Conn
	busy bool
}

// answer is what came back.
type answer struct {
	op   int
	req  kmsg.Request
	resp kmsg.Response
	err  error
	c    *conn
	more bool // others are to come on the connection
}

func (t *target) conn() (*conn, error) {
	for _, c := range t.conns {
		if !c.busy {
			c.busy = true
			return c, nil
		}
	}
	nc, err := net.DialTimeout("tcp", t.addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, busy: true}
	t.conns = append(t.conns, c)
	hello := kmsg.NewPtrApiVersionsRequest() // so that nothing that is sent on another connection later overtakes what comes next
	_, err = roundTrip(nc, hello, encode(hello, 0, nil))
	return c, err
}

// hangUp closes the connections on which an answer is waited for; the coordinator is not to mind.
func (t *target) hangUp() {
	for _, c := range t.conns {
		if c.busy {
			c.nc.Close()
		}
	}
}

// ask asks what there is to tell of the sequence's groups.
func (t *target) ask(prefix string) (*kmsg.DescribeGroupsResponse, error) {
	c, err := t.conn()
	if err != nil {
		return nil, err
	}
	c.busy = false
	d := kmsg.NewPtrDescribeGroupsRequest()
	d.Groups = []string{prefix + "g", prefix + "other"}
	resp, err := roundTrip(c.nc, d, encode(d, 0, nil))
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.DescribeGroupsResponse), nil
}

func (t *target) drop(c *conn) {
	c.nc.Close()
	for i := range t.conns {
		if t.conns[i] == c {
			t.conns = append(t.conns[:i], t.conns[i+1:]...)
			return
		}
	}
}

func (t *target) close() {
	for _, c := range t.conns {
		c.nc.Close()
	}
	t.conns = nil
}

// restart is the shell command that kills kcoord and starts it again; "": it is not killed.
var restart string

// crash kills the coordinator and starts it again, and waits until it answers as before.
func (t *target) crash(prefix string) error {
	t.close()
	if out, err := exec.Command("bash", "-c", restart).CombinedOutput(); err != nil {
		return fmt.Errorf("restart: %w: %s", err, out)
	}
	nc, err := net.DialTimeout("tcp", t.addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey = prefix
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		resp, err := roundTrip(nc, req, encode(req, 0, nil))
		if err != nil {
			return err
		}
		if resp.(*kmsg.FindCoordinatorResponse).ErrorCode == 0 {
			return t.calm(prefix)
		}
	}
	return fmt.Errorf("%s: not back after a restart", t.addr)
}

func encode(req kmsg.Request, correlation int32, clientID *string) []byte {
	b := make([]byte, 4, 256)
	b = binary.BigEndian.AppendUint16(b, uint16(req.Key()))
	b = binary.BigEndian.AppendUint16(b, uint16(req.GetVersion()))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	if clientID == nil {
		b = append(b, 0xff, 0xff)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(*clientID)))
		b = append(b, *clientID...)
	}
	if req.IsFlexible() {
		b = append(b, 0)
	}
	b = req.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

var errClosed = errors.New("closed")

func roundTrip(nc net.Conn, req kmsg.Request, frame []byte) (kmsg.Response, error) {
	if _, err := nc.Write(frame); err != nil {
		return nil, errClosed
	}
	return receive(nc, req, int32(binary.BigEndian.Uint32(frame[8:])))
}

// receive reads the answer to a request.
func receive(nc net.Conn, req kmsg.Request, correlation int32) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return nil, errClosed
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(nc, b); err != nil {
		return nil, fmt.Errorf("half an answer: %w", err)
	}
	if len(b) < 4 || int32(binary.BigEndian.Uint32(b)) != correlation {
		return nil, fmt.Errorf("the answer is not to request %d", correlation)
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if req.Key() == 18 && len(b) > 5 && binary.BigEndian.Uint16(b[4:]) == uint16(kerr.UnsupportedVersion.Code) {
		resp.SetVersion(0)
	}
	at := 4
	if resp.IsFlexible() && req.Key() != 18 {
		at++
	}
	if len(b) < at {
		return nil, errors.New("answer without a header")
	}
	if err := resp.ReadFrom(b[at:]); err != nil {
		return nil, fmt.Errorf("answer does not parse: %w", err)
	}
	if again := resp.AppendTo(nil); len(again) != len(b)-at {
		return nil, fmt.Errorf("answer has %d bytes, its meaning %d", len(b)-at, len(again))
	}
	return resp, nil
}

// tidy deletes the sequence's groups in which nothing is, as those are that a transaction made which was aborted: a kill takes
// them away, and Kafka its next sweep.
func (t *target) tidy(prefix string) error {
	nc, err := net.DialTimeout("tcp", t.addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, g := range []string{"g", "other"} {
		f := kmsg.NewPtrOffsetFetchRequest()
		f.Version, f.Group, f.RequireStable = 7, prefix+g, true
		for name, ps := range map[string][]int32{"dt-a": {0, 1, 2, 3}, "dt-b": {0}} {
			f.Topics = append(f.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: ps})
		}
		resp, err := roundTrip(nc, f, encode(f, 0, nil))
		if err != nil {
			return err
		}
		if !nothing(resp.(*kmsg.OffsetFetchResponse)) {
			continue
		}
		d := kmsg.NewPtrDeleteGroupsRequest()
		d.Groups = []string{prefix + g}
		if _, err := roundTrip(nc, d, encode(d, 0, nil)); err != nil {
			return err
		}
	}
	return nil
}

// nothing says whether a group has neither offsets nor pending ones.
func nothing(r *kmsg.OffsetFetchResponse) bool {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Offset != -1 {
				return false
			}
		}
	}
	return r.ErrorCode == 0
}
