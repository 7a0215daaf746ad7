package kafka

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// markersOf is a marker for partitions of topics, given as topic-partition.
func markersOf(producer int64, epoch int16, at ...string) kmsg.WriteTxnMarkersRequestMarker {
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch = producer, epoch
	for _, a := range at {
		topic, part := a[:len(a)-2], int32(a[len(a)-1]-'0')
		if a[len(a)-1] == '-' {
			topic, part = a[:len(a)-1], -1
		}
		t := kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: topic}
		if part >= 0 {
			t.Partitions = []int32{part}
		}
		m.Topics = append(m.Topics, t)
	}
	return m
}

func writeMarkers(c *client, version int16, markers ...kmsg.WriteTxnMarkersRequestMarker) (shown string) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Markers = markers
	for _, m := range do[*kmsg.WriteTxnMarkersResponse](c, version, req).Markers {
		shown += fmt.Sprint(m.ProducerID, ":")
		for _, t := range m.Topics {
			shown += " " + t.Topic
			for _, p := range t.Partitions {
				shown += fmt.Sprintf("[%d %d]", p.Partition, p.ErrorCode)
			}
		}
		shown += "; "
	}
	return shown
}

// The answer has each producer, topic and partition once, and none of which nothing was asked.
func TestMarkersAreAnsweredOnce(t *testing.T) {
	s := withNode(t)
	c := s.client()
	const ours = "__consumer_offsets"
	for _, tc := range []struct {
		markers []kmsg.WriteTxnMarkersRequestMarker
		want    string
	}{
		{[]kmsg.WriteTxnMarkersRequestMarker{markersOf(7, 0, ours+"-1"), markersOf(7, 0, ours+"-2")}, "7: " + ours + "[1 0][2 0]; "},
		{[]kmsg.WriteTxnMarkersRequestMarker{markersOf(7, 0, ours+"-1", ours+"-1", ours+"-2")}, "7: " + ours + "[1 0][2 0]; "},
		{[]kmsg.WriteTxnMarkersRequestMarker{markersOf(8, 0), markersOf(9, 0, ours+"-"), markersOf(7, 0, ours+"-1")}, "7: " + ours + "[1 0]; "},
		{[]kmsg.WriteTxnMarkersRequestMarker{markersOf(7, 0, ours+"-9")}, "7: " + ours + "[9 3]; "},
		// Nobody is such a producer, and no record can say so.
		{[]kmsg.WriteTxnMarkersRequestMarker{markersOf(-1, 0, ours+"-1"), markersOf(7, -1, ours+"-1")}, "-1: " + ours + "[1 -1]; 7: " + ours + "[1 -1]; "},
	} {
		if got := writeMarkers(c, 1, tc.markers...); got != tc.want {
			t.Errorf("%v: %s, not %s", tc.markers, got, tc.want)
		}
	}
}

// A broker answers in an order of its own.
func TestMarkersOfABrokerInAnyOrder(t *testing.T) {
	s := withNode(t)
	f := func() (net.Conn, error) {
		here, there := net.Pipe()
		go answerMarkersBackwards(t, there, 0)
		return here, nil
	}
	s.passTo.Store(&f)
	t.Cleanup(func() { s.passTo.Store(nil) })
	got := writeMarkers(s.client(), 2, markersOf(7, 0, "__consumer_offsets-1", "t-0"), markersOf(8, 0, "t-1"), markersOf(9, 0, "u-0"))
	if want := "7: __consumer_offsets[1 0] t[0 0]; 8: t[1 0]; 9: u[0 0]; "; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// The broker has a __consumer_offsets of its own, with offsets that were pending before kcoord came. What it says of
// a marker counts, but where it has no such topic; where it says nothing, who sent the marker comes again.
func TestMarkersOfOffsetsAreTheBrokersToo(t *testing.T) {
	s := withNode(t)
	t.Cleanup(func() { s.passTo.Store(nil) })
	for _, tc := range []struct{ broker, want int16 }{{0, 0}, {3, 0}, {6, 6}, {47, 47}, {-2, 6}} {
		f := func() (net.Conn, error) {
			if tc.broker == -2 {
				return nil, net.ErrClosed
			}
			here, there := net.Pipe()
			go answerMarkersBackwards(t, there, tc.broker)
			return here, nil
		}
		s.passTo.Store(&f)
		got := writeMarkers(s.client(), 1, markersOf(7, 0, "__consumer_offsets-1"))
		if want := fmt.Sprintf("7: __consumer_offsets[1 %d]; ", tc.want); got != want {
			t.Errorf("the broker says %d: %s, not %s", tc.broker, got, want)
		}
	}
}

// answerMarkersBackwards is a broker that has written all markers, and tells of the last one first.
// offsets is its code for what is in __consumer_offsets.
func answerMarkersBackwards(t *testing.T, nc net.Conn, offsets int16) {
	defer nc.Close()
	for {
		body, err := readFrame(nc)
		if err != nil {
			return
		}
		var h header
		n := h.parse(body)
		out := kbin.AppendInt32(make([]byte, 4), h.correlation)
		switch h.key {
		case 18:
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.Version = h.version
			out = resp.AppendTo(out)
		case 27:
			req := kmsg.NewPtrWriteTxnMarkersRequest()
			req.Version = h.version
			if err := req.ReadFrom(body[n+1:]); err != nil {
				t.Error(err)
				return
			}
			resp := kmsg.NewPtrWriteTxnMarkersResponse()
			resp.Version = h.version
			for _, m := range slices.Backward(req.Markers) {
				rm := kmsg.WriteTxnMarkersResponseMarker{ProducerID: m.ProducerID}
				for _, mt := range m.Topics {
					rt := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: mt.Topic}
					for _, p := range mt.Partitions {
						rp := kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p}
						if mt.Topic == "__consumer_offsets" {
							rp.ErrorCode = offsets
						}
						rt.Partitions = append(rt.Partitions, rp)
					}
					rm.Topics = append(rm.Topics, rt)
				}
				resp.Markers = append(resp.Markers, rm)
			}
			out = resp.AppendTo(append(out, 0))
		}
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

// Who sends markers to a partition whose shard cannot be asked now is told to look for its leader,
// and comes again: Kafka's coordinator takes the codes of coordinators for the end.
func TestMarkersOfAShardThatIsLoading(t *testing.T) {
	s := newStage(t, yes)
	if got := writeMarkers(s.client(), 1, markersOf(7, 0, "__consumer_offsets-1")); got != "7: __consumer_offsets[1 6]; " {
		t.Error(got)
	}
}
