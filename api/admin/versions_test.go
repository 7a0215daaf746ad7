package admin

import (
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/metadataversion"
)

// commitWithID is a commit that keeps a topic id.
func (w *world) commitWithID(id string) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = id, -1, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", TopicID: [16]byte{1}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: 0, Offset: 4, LeaderEpoch: 3},
	}}}
	ask[*kmsg.OffsetCommitResponse](w.t, w.node, group.Commit{OffsetCommitRequest: req})
}

func plan(t *testing.T, c adminpb.VersionsClient, to string) (*adminpb.DowngradePlan, error) {
	t.Helper()
	stream, err := c.PlanDowngrade(t.Context(), &adminpb.PlanDowngradeRequest{To: to})
	for err == nil {
		var resp *adminpb.PlanDowngradeResponse
		if resp, err = stream.Recv(); err == nil && resp.GetPlan() != nil {
			return resp.GetPlan(), nil
		}
	}
	return nil, err
}

func downgrade(t *testing.T, c adminpb.VersionsClient, to string, force bool) (started *adminpb.DowngradeStarted, last *adminpb.Rewrite, err error) {
	t.Helper()
	stream, err := c.Downgrade(t.Context(), &adminpb.DowngradeRequest{To: to, Force: force})
	for err == nil {
		var resp *adminpb.DowngradeResponse
		if resp, err = stream.Recv(); err == nil {
			if s := resp.GetStarted(); s != nil {
				started = s
			}
			if r := resp.GetRewrite(); r != nil {
				last = r
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return started, last, err
}

func TestDowngrade(t *testing.T) {
	w := newWorld(t)
	c := adminpb.NewVersionsClient(w.conn)
	w.commitWithID("g")
	p, err := plan(t, c, "2.0")
	if err != nil || len(p.GetLosses()) != 2 || p.GetRecords() != 1 || p.GetTolerates() || len(p.GetSteps()) == 0 {
		t.Fatalf("%v, %v", p, err)
	}

	// Refused with every reason as data.
	_, _, err = downgrade(t, c, "2.0", false)
	s := status.Convert(err)
	if s.Code() != codes.FailedPrecondition || len(s.Details()) != 1 {
		t.Fatalf("%v, %v", err, s.Details())
	}
	refused := s.Details()[0].(*adminpb.DowngradeRefused)
	lost := map[string]bool{}
	for _, l := range refused.GetLosses() {
		lost[l.GetWhat()] = l.GetRecords() == 1 && l.GetType() == "OffsetCommitValue" && len(l.GetExamples()) == 1 && l.GetReason() != ""
	}
	if len(lost) != 2 || !lost["topicId"] || !lost["leaderEpoch"] {
		t.Errorf("%v", refused)
	}
	// Without a place for a checkpoint it is not forced either.
	if _, _, err := downgrade(t, c, "2.0", true); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("%v", err)
	}
	d, err := c.DescribeVersions(t.Context(), &adminpb.DescribeVersionsRequest{})
	if err != nil || d.GetMetadataVersion() != "4.4-IV2" || d.GetLevel() != 33 || d.GetRewrite() != nil || d.GetFeatures()["group.version"] != 1 {
		t.Errorf("%v, %v", d, err)
	}

	// Without loss it goes ahead, twice the same.
	started, last, err := downgrade(t, c, "4.0", false)
	if err != nil || started.GetUnchanged() || started.GetCheckpoint() != "" || last.GetUnderWay() || last.GetShardsDone() != last.GetShards() {
		t.Errorf("%v, %v, %v", started, last, err)
	}
	if started, _, err := downgrade(t, c, "4.0", false); err != nil || !started.GetUnchanged() {
		t.Errorf("%v, %v", started, err)
	}
	up, err := c.Upgrade(t.Context(), &adminpb.UpgradeRequest{To: "33"})
	if err != nil || up.GetFrom() != "4.0-IV3" || up.GetTo() != "4.4-IV2" {
		t.Errorf("%v, %v", up, err)
	}

	for _, to := range []string{"", "5.0", "99", "left"} {
		if _, err := plan(t, c, to); status.Code(err) != codes.InvalidArgument {
			t.Errorf("plan to %q: %v", to, err)
		}
		if _, err := c.Upgrade(t.Context(), &adminpb.UpgradeRequest{To: to}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("upgrade to %q: %v", to, err)
		}
	}
	if _, err := c.Upgrade(t.Context(), &adminpb.UpgradeRequest{To: "3.3"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("upgrade down: %v", err)
	}
}

// TestRefusalFitsIntoHeaders: whatever clients chose as names, and however many reasons there are. gRPC's Java takes 8 KB
// of headers, in which details are in base64.
func TestRefusalFitsIntoHeaders(t *testing.T) {
	const headers = 8 << 10
	w := newWorld(t)
	c := adminpb.NewVersionsClient(w.conn)
	w.commitWithID(strings.Repeat("x", 32_000))
	var trailer metadata.MD
	stream, err := c.Downgrade(t.Context(), &adminpb.DowngradeRequest{To: "2.0"})
	for err == nil {
		_, err = stream.Recv()
	}
	trailer = stream.Trailer()
	size := 0
	for name, values := range trailer {
		for _, v := range values {
			size += len(name) + base64.StdEncoding.EncodedLen(len(v))
		}
	}
	if s := status.Convert(err); s.Code() != codes.FailedPrecondition || len(s.Details()) != 1 || size == 0 || size > headers {
		t.Errorf("%d bytes of headers, %d details, %v", size, len(s.Details()), s.Code())
	}

	p := &metadataversion.Plan{From: metadataversion.TargetOf(metadataversion.Latest), To: metadataversion.TargetOf(metadataversion.V2_0_IV0)}
	for typ := range int16(18) {
		for _, what := range []metadataversion.Fields{metadataversion.WholeRecord, metadataversion.Damaged} {
			p.Losses = append(p.Losses, metadataversion.Loss{Type: typ, What: what, Records: 1 << 40, Entities: 1 << 14, Examples: []metadataversion.Example{{
				Entity: "a group with a name", Key: `{"group":"a group with a name","topic":"a topic","partition":1}`,
			}}})
		}
	}
	s := status.Convert(refusedDowngrade(p))
	if size := base64.StdEncoding.EncodedLen(proto.Size(s.Proto())) + len(s.Message()); size > headers-500 || len(s.Details()) != 1 {
		t.Fatalf("%d bytes, %d details", size, len(s.Details()))
	}
	refused := s.Details()[0].(*adminpb.DowngradeRefused)
	if len(refused.GetLosses()) != len(p.Losses) || !strings.Contains(s.Message(), "; and 3") {
		t.Errorf("%d of %d reasons: %s", len(refused.GetLosses()), len(p.Losses), s.Message())
	}
	for _, l := range refused.GetLosses() {
		if l.GetWhat() == "" || l.GetType() == "" || l.GetRecords() != 1<<40 {
			t.Errorf("%v", l)
		}
	}
}
