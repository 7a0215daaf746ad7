//go:build kafka

package difftest

import (
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ends asks where a topic's logs end.
func ends(topic string) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version = 2
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for i := range int32(logPartitions) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = i, -1
		t.Partitions = append(t.Partitions, p)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// offsets asks where they end for who reads committed records (the last stable offset), or all.
func (d *draw) offsets() kmsg.Request {
	r := ends(d.s.topic)
	r.IsolationLevel = int8(d.IntN(2))
	return r
}

// read fetches what the sequence has written, mostly as who reads committed records.
func (d *draw) read() kmsg.Request {
	r := kmsg.NewPtrFetchRequest()
	r.MaxBytes, r.SessionEpoch = 1<<20, -1
	if r.IsolationLevel = 1; d.odd(4) {
		r.IsolationLevel = 0
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = d.s.topic, d.t.ids[d.s.topic]
	for i := range int32(logPartitions) {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes = i, 1<<20
		t.Partitions = append(t.Partitions, p)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// producersOf asks what a topic's partitions know of producers.
func producersOf(topic string) *kmsg.DescribeProducersRequest {
	r := kmsg.NewPtrDescribeProducersRequest()
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = topic, []int32{0, 1, 2}
	r.Topics = append(r.Topics, t)
	return r
}

// open visits the producers that have a transaction open in a partition.
func open(resp kmsg.Response, visit func(partition int32, p producer)) {
	for _, t := range resp.(*kmsg.DescribeProducersResponse).Topics {
		for _, p := range t.Partitions {
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset >= 0 {
					visit(p.Partition, producer{a.ProducerID, int16(a.ProducerEpoch)})
				}
			}
		}
	}
}

func (d *draw) describeProducers() kmsg.Request { return producersOf(d.s.topic) }

// findCoordinator finds the epoch of the coordinator that wrote the last marker: who writes markers in an
// earlier one is fenced.
func (t *target) findCoordinator(topic string) error {
	resp, err := askOnce(t.addr, producersOf(topic))
	if err != nil {
		return err
	}
	for _, rt := range resp.(*kmsg.DescribeProducersResponse).Topics {
		for _, rp := range rt.Partitions {
			for _, p := range rp.ActiveProducers {
				t.coordinatorEpoch = max(t.coordinatorEpoch, p.CoordinatorEpoch)
			}
		}
	}
	return nil
}

// makeLog makes the sequence's own topic, and waits until it can be written to.
func (t *target) makeLog(topic string) error {
	nc, err := net.DialTimeout("tcp", t.addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := kmsg.NewPtrCreateTopicsRequest()
	c.Version, c.TimeoutMillis = 7, 5000
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, logPartitions, 1
	c.Topics = append(c.Topics, ct)
	made, err := roundTrip(nc, c, encode(c, 1, nil))
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		l := ends(topic)
		resp, err := roundTrip(nc, l, encode(l, 2, nil))
		if err != nil {
			return err
		}
		if ready(resp.(*kmsg.ListOffsetsResponse)) {
			t.ids[topic] = made.(*kmsg.CreateTopicsResponse).Topics[0].TopicID
			return nil
		}
	}
	return fmt.Errorf("%s: topic %s does not come", t.addr, topic)
}

func ready(r *kmsg.ListOffsetsResponse) bool {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return false
			}
		}
	}
	return true
}

// dropLog deletes the sequence's own topic.
func (t *target) dropLog(topic string) {
	d := kmsg.NewPtrDeleteTopicsRequest()
	d.Version, d.TimeoutMillis, d.TopicNames = 4, 5000, []string{topic}
	_, _ = askOnce(t.addr, d) // what stays only takes room
}
