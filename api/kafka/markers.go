package kafka

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// peekMarkers passes markers on that are for the broker alone.
func peekMarkers(version int16, body []byte) (verdict, bool) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = version
	if err := req.ReadFrom(body); err != nil {
		return 0, false
	}
	for _, m := range req.Markers {
		for _, t := range m.Topics {
			if t.Topic == txn.OffsetsTopic {
				return answerHere, true
			}
		}
	}
	return passOn, true
}

// writeTxnMarkers writes markers to partitions of __consumer_offsets, which are here,
// and has the broker write those to others.
func (k *call) writeTxnMarkers(body []byte) error {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	codes := k.brokersMarkers(req)
	var ours []kmsg.WriteTxnMarkersRequestMarker // one partition each
	for _, m := range req.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if t.Topic == txn.OffsetsTopic && p >= 0 && p < k.c.srv.o.OffsetsPartitions {
					one := m
					one.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Partitions: []int32{p}}}
					ours = append(ours, one)
				}
			}
		}
	}
	k.parts, k.missing = make([]part, len(ours)), len(ours)
	k.answer = func(k *call, _ group.Response, err error) kmsg.Response {
		for i, one := range ours {
			codes[markerAt{one.ProducerID, one.ProducerEpoch, txn.OffsetsTopic, one.Topics[0].Partitions[0]}] = markedCode(k.partOr(i, err))
		}
		return k.marked(req, codes)
	}
	if len(ours) == 0 {
		k.complete(nil, nil)
	}
	for i, one := range ours {
		m := group.Marker{
			Producer: one.ProducerID, Epoch: one.ProducerEpoch, Commit: one.Committed, CoordinatorEpoch: one.CoordinatorEpoch,
			TransactionVersion: int16(one.TransactionVersion),
		}
		k.c.srv.o.Transactions.Marker(one.Topics[0].Partitions[0], m, func(resp group.Response, err error) { k.completePart(i, resp, err) })
	}
	return nil
}

// markerAt names a marker's partition.
type markerAt struct {
	producer  int64
	epoch     int16
	topic     string
	partition int32
}

// brokersMarkers has the broker write what is not ours. What it says nothing of is not written.
func (k *call) brokersMarkers(req *kmsg.WriteTxnMarkersRequest) map[markerAt]int16 {
	rest := kmsg.NewPtrWriteTxnMarkersRequest()
	rest.Version = req.Version
	for _, m := range req.Markers {
		others := m
		others.Topics = nil
		for _, t := range m.Topics {
			if t.Topic != txn.OffsetsTopic {
				others.Topics = append(others.Topics, t)
			}
		}
		if others.Topics != nil {
			rest.Markers = append(rest.Markers, others)
		}
	}
	codes := map[markerAt]int16{}
	if rest.Markers == nil {
		return codes
	}
	resp := rest.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	if err := upstream.AskOnce(k.c.context(), func(context.Context) (net.Conn, error) { return k.c.dial() }, rest, resp); err != nil {
		return codes
	}
	for i, m := range resp.Markers {
		if i >= len(rest.Markers) || rest.Markers[i].ProducerID != m.ProducerID {
			continue
		}
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				codes[markerAt{m.ProducerID, rest.Markers[i].ProducerEpoch, t.Topic, p.Partition}] = p.ErrorCode
			}
		}
	}
	return codes
}

// marked makes the answer. A partition that nobody speaks of is to be tried again.
func (k *call) marked(req *kmsg.WriteTxnMarkersRequest, codes map[markerAt]int16) kmsg.Response {
	out := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range req.Markers {
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				code, told := codes[markerAt{m.ProducerID, m.ProducerEpoch, t.Topic, p}]
				switch {
				case told:
				case t.Topic == txn.OffsetsTopic:
					code = codeUnknownTopicOrPartition
				default:
					code = kerr.NotLeaderForPartition.Code
				}
				k.failed(code)
				rt.Partitions = append(rt.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p, ErrorCode: code})
			}
			rm.Topics = append(rm.Topics, rt)
		}
		out.Markers = append(out.Markers, rm)
	}
	return out
}

// markedCode is what a shard of groups says.
func markedCode(p part) int16 {
	if m, ok := p.resp.(group.Marked); ok && p.err == nil {
		return m.ErrorCode
	}
	return code(p.err)
}
