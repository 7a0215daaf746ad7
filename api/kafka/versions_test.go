package kafka

import (
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
)

// ranges is what was announced.
func ranges(r *kmsg.ApiVersionsResponse) map[int16][2]int16 {
	m := map[int16][2]int16{}
	for _, k := range r.ApiKeys {
		m[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return m
}

func asker() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "con-form.x", "1.0-x"
	return req
}

func TestVersionsAnnounced(t *testing.T) {
	s := newStage(t, yes)
	c := s.client()
	for v := int16(0); v <= 5; v++ {
		got := do[*kmsg.ApiVersionsResponse](c, v, asker())
		m := ranges(got)
		for key, want := range map[int16][2]int16{
			8: {2, 10}, 9: {1, 10}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5}, 14: {0, 5}, 15: {0, 6}, 16: {0, 5}, 18: {0, 5}, 42: {0, 3}, 47: {0, 0},
		} {
			if m[key] != want {
				t.Errorf("v%d: %s is announced as %v", v, kmsg.NameForKey(key), m[key])
			}
		}
		for _, key := range []int16{68, 69, 76, 77, 78, 79, 88, 90} {
			if _, ok := m[key]; ok {
				t.Errorf("v%d: %s is announced", v, kmsg.NameForKey(key))
			}
		}
		for _, f := range got.FinalizedFeatures {
			if !theirs(f.Name, false) && f.Name != "transaction.version" {
				t.Errorf("v%d: %s is finalized at the broker's level", v, f.Name)
			}
		}
		if v >= 4 && len(got.SupportedFeatures) == 0 {
			t.Errorf("v%d: no features", v)
		}
	}
}

// The embedded broker's answers that Kafka's Java clients cannot read are not offered, and are there.
func TestNoNullsForJava(t *testing.T) {
	for _, embedded := range []bool{true, false} {
		s := withNode(t, func(o *Options, _ *coordinator.Options) { o.Embedded = embedded })
		s.topic("t") // with version 7
		r := ranges(do[*kmsg.ApiVersionsResponse](s.client(), 4, asker()))
		_, partitions := r[int16(kmsg.DescribeTopicPartitions)]
		if creates := r[int16(kmsg.CreateTopics)][1]; partitions == embedded || (creates == 4) != embedded {
			t.Errorf("embedded %v: DescribeTopicPartitions %v, CreateTopics up to %d", embedded, partitions, creates)
		}
	}
}

func TestVersionsRefused(t *testing.T) {
	s := newStage(t, yes)
	for _, tc := range []struct {
		version int16
		change  func(*kmsg.ApiVersionsRequest)
		want    int16
	}{
		{3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "" }, 42},
		{3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareVersion = "1." }, 42},
		{3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "con form" }, 42},
		{3, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "-x" }, 42},
		{2, func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "" }, 0},
		{5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID = ptr("kcoord-dev") }, 42},
		{5, func(r *kmsg.ApiVersionsRequest) { r.NodeID = 0 }, 42},
		{5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr("kcoord-dev"), 0 }, 0},
		{5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr("kcoord-dev"), 1 }, 129},
		{5, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr("other"), 0 }, 129},
		{4, func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = ptr("other"), 0 }, 0},
	} {
		req := asker()
		tc.change(req)
		if got := do[*kmsg.ApiVersionsResponse](s.client(), tc.version, req); got.ErrorCode != tc.want || (tc.want != 0) != (len(got.ApiKeys) == 0) {
			t.Errorf("%+v: %d, not %d", req, got.ErrorCode, tc.want)
		}
	}
}

// Whatever version a client asks in, it gets an answer that it can read, and the
// connection goes on.
func TestVersionsUnknown(t *testing.T) {
	s := newStage(t, yes)
	c := s.client()
	for _, v := range []int16{6, 99, 32767, -1, -32768} {
		req := asker()
		corr := c.send(v, req)
		req.SetVersion(0)
		got := recv[*kmsg.ApiVersionsResponse](c, corr, req)
		if got.ErrorCode != 35 || len(got.ApiKeys) != 1 || ranges(got)[18] != [2]int16{0, 5} {
			t.Errorf("v%d: %+v", v, got)
		}
	}
	if got := do[*kmsg.ApiVersionsResponse](c, 0, asker()); got.ErrorCode != 0 {
		t.Error(got)
	}
}

func TestFindCoordinator(t *testing.T) {
	s := newStage(t, yes)
	host, port, _ := net.SplitHostPort(s.addr)
	for v := int16(0); v <= 6; v++ {
		for typ, want := range map[int8]int16{0: 0, 1: 0, 2: 42, 3: 42} {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = typ, "g", []string{"g", "h", ""}
			got := do[*kmsg.FindCoordinatorResponse](s.client(), v, req)
			all := got.Coordinators
			if v < 4 {
				all = []kmsg.FindCoordinatorResponseCoordinator{{ErrorCode: got.ErrorCode, Host: got.Host, Port: got.Port, NodeID: got.NodeID}}
			} else if len(all) != 3 || all[1].Key != "h" {
				t.Errorf("v%d: %+v", v, got)
			}
			if v == 0 {
				want = 0
			}
			for _, c := range all {
				here := c.Host == host && strconv.Itoa(int(c.Port)) == port && c.NodeID == 0
				nowhere := c.Host == "" && c.Port == -1 && c.NodeID == -1
				if v >= 4 && (*c.ErrorMessage != "") != (typ == 3) { // an unknown type alone is told of in words
					t.Errorf("v%d type %d: %q", v, typ, *c.ErrorMessage)
				}
				if c.ErrorCode != want || want == 0 && !here || want != 0 && !nowhere {
					t.Errorf("v%d type %d: %+v", v, typ, c)
				}
			}
		}
	}
}
