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

// writeTxnMarkers writes markers to partitions of __consumer_offsets, which are here, and has the broker write
// all of them. For it has a topic of that name, too: what it knows of pending offsets is from before kcoord, and
// who ends it is its own coordinator, which finds itself by kcoord's address, or a person with Kafka's tools.
// Would it not be told, they were pending for ever when somebody went back to it.
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
				switch {
				case t.Topic != txn.OffsetsTopic || p < 0 || p >= k.c.srv.o.OffsetsPartitions:
				case m.ProducerID < 0 || m.ProducerEpoch < 0: // no record can say so
					codes[markerAt{m.ProducerID, t.Topic, p}] = kerr.UnknownServerError.Code
				default:
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
			at := markerAt{one.ProducerID, txn.OffsetsTopic, one.Topics[0].Partitions[0]}
			there, told := codes[at]
			switch here := markedCode(k.partOr(i, err)); {
			case here != 0 || told && there == codeUnknownTopicOrPartition:
				codes[at] = here
			case !told: // once more, then: here that changes nothing
				codes[at] = kerr.NotLeaderForPartition.Code
			}
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

// markerAt names a marker's partition. The answer does not tell apart what a request has of one producer.
type markerAt struct {
	producer  int64
	topic     string
	partition int32
}

// brokersMarkers has the broker write them. What it says nothing of is not written.
func (k *call) brokersMarkers(req *kmsg.WriteTxnMarkersRequest) map[markerAt]int16 {
	codes := map[markerAt]int16{}
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	if err := upstream.AskOnce(k.c.context(), func(context.Context) (net.Conn, error) { return k.c.dial() }, req, resp); err != nil {
		return codes
	}
	for _, m := range resp.Markers { // in any order
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				codes[markerAt{m.ProducerID, t.Topic, p.Partition}] = p.ErrorCode
			}
		}
	}
	return codes
}

// marked makes the answer: of each producer, topic and partition one, as in Kafka. A partition that
// nobody speaks of is to be tried again.
func (k *call) marked(req *kmsg.WriteTxnMarkersRequest, codes map[markerAt]int16) kmsg.Response {
	out := kmsg.NewPtrWriteTxnMarkersResponse()
	said := map[markerAt]bool{}
	places := markedTopics{out: out, markers: map[int64]int{}, topics: map[markerAt]int{}}
	for _, m := range req.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				at := markerAt{m.ProducerID, t.Topic, p}
				if said[at] {
					continue
				}
				said[at] = true
				code, told := codes[at]
				switch {
				case told:
				case t.Topic == txn.OffsetsTopic:
					code = codeUnknownTopicOrPartition
				default:
					code = kerr.NotLeaderForPartition.Code
				}
				k.failed(code)
				topic := places.of(m.ProducerID, t.Topic)
				topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p, ErrorCode: code})
			}
		}
	}
	return out
}

// markedTopics finds the entries of an answer.
type markedTopics struct {
	out     *kmsg.WriteTxnMarkersResponse
	markers map[int64]int
	topics  map[markerAt]int // by producer and topic
}

// of is a producer's topic, made where it is not there yet.
func (a *markedTopics) of(producer int64, topic string) *kmsg.WriteTxnMarkersResponseMarkerTopic {
	i, there := a.markers[producer]
	if !there {
		i = len(a.out.Markers)
		a.markers[producer] = i
		a.out.Markers = append(a.out.Markers, kmsg.WriteTxnMarkersResponseMarker{ProducerID: producer})
	}
	m := &a.out.Markers[i]
	j, there := a.topics[markerAt{producer: producer, topic: topic}]
	if !there {
		j = len(m.Topics)
		a.topics[markerAt{producer: producer, topic: topic}] = j
		m.Topics = append(m.Topics, kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: topic})
	}
	return &m.Topics[j]
}

// markedCode is what a shard of groups says. Where it cannot be asked, who sends markers is told what a
// partition's leader would say: it knows nothing of coordinators, and Kafka's gives up on such a code.
func markedCode(p part) int16 {
	m, ok := p.resp.(group.Marked)
	if ok && p.err == nil {
		return m.ErrorCode
	}
	switch c := code(p.err); c {
	case codeLoading, codeNotAvailable, codeNotCoordinator:
		return kerr.NotLeaderForPartition.Code
	default:
		return c
	}
}
