//go:build kafka

package difftest

import "github.com/twmb/franz-go/pkg/kmsg"

// markers end what a producer has pending in a group or in the log, over its coordinator's head, in the producer's own epoch: as
// a coordinator would that has transactions of version 1.
func (d *draw) markers() kmsg.Request {
	r := kmsg.NewPtrWriteTxnMarkersRequest()
	m, ok := d.marker()
	if !ok {
		return r
	}
	if d.o.version > 1 {
		m.TransactionVersion = int8(d.IntN(3))
	}
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic = "__consumer_offsets"
	t.Partitions = []int32{0, 1, 2, 3}
	if d.odd(4) {
		t.Partitions = []int32{int32(d.IntN(4)), 4, -1}
	}
	m.Topics = append(m.Topics, t)
	r.Markers = append(r.Markers, m)
	return r
}

// markersAhead are of transactions of version 2, whose markers have the epoch that comes next: partitions of Kafka take nothing
// of the producer in its own any more, nor markers of version 1 of its coordinator.
func (d *draw) markersAhead() kmsg.Request {
	r := kmsg.NewPtrWriteTxnMarkersRequest()
	m, ok := d.marker()
	if !ok {
		return r
	}
	m.TransactionVersion = 2
	m.ProducerEpoch++
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = "__consumer_offsets", []int32{0, 1, 2, 3}
	if d.IntN(2) == 0 {
		m.Topics = append(m.Topics, t)
	}
	r.Markers = append(r.Markers, m)
	return r
}

// marker is the slot's producer's, of some partitions of the log.
func (d *draw) marker() (m kmsg.WriteTxnMarkersRequestMarker, ok bool) {
	all := d.t.producers[d.o.slot%txnIDs]
	if len(all) == 0 {
		return m, false
	}
	m = kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.Committed = all[len(all)-1].id, all[len(all)-1].epoch, d.IntN(2) == 0
	m.CoordinatorEpoch = d.t.coordinatorEpoch
	if d.IntN(3) == 0 {
		return m, true
	}
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = d.s.topic, []int32{0, 1, 2}[:1+d.IntN(logPartitions)]
	m.Topics = append(m.Topics, t)
	return m, true
}
