package kafka

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// offsetDelete asks the group even where no partition is left for it: its own
// error stands above those of partitions, and alone.
func (k *call) offsetDelete(body []byte) error {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	failed := k.takeOutUnknown(req)
	k.ask(group.DeleteOffsets{OffsetDeleteRequest: req}, func(k *call, resp group.Response, err error) kmsg.Response {
		if err != nil {
			out := kmsg.NewPtrOffsetDeleteResponse()
			out.ErrorCode = code(err)
			k.failed(out.ErrorCode)
			return out
		}
		out := resp.(*kmsg.OffsetDeleteResponse)
		k.failed(out.ErrorCode)
		if out.ErrorCode == 0 && len(failed) > 0 {
			addDeleteFailures(out, failed)
		}
		for i := range out.Topics {
			for _, p := range out.Topics[i].Partitions {
				k.failed(p.ErrorCode)
			}
		}
		return out
	})
	return nil
}

// takeOutUnknown takes out the partitions that the broker does not have, or that it cannot be asked for.
func (k *call) takeOutUnknown(req *kmsg.OffsetDeleteRequest) (failed []failure) {
	view := k.c.srv.o.Upstream.Topics()
	var names []string
	for _, t := range req.Topics {
		names = append(names, t.Topic)
	}
	// Deleting offsets is rare enough to ask each time.
	err := view.Ask(k.c.context(), names, nil)
	fails := code(err)
	if fails == 0 {
		fails = codeUnknownTopicOrPartition
	}
	has := func(topic string, partition int32) bool {
		t := asked(view, topic, err)
		return t != nil && t.Has(partition)
	}
	topics := req.Topics[:0]
	for _, t := range req.Topics {
		if len(t.Partitions) == 0 && asked(view, t.Topic, err) == nil {
			failed = append(failed, failure{topic: t.Topic, empty: true})
		}
		parts := t.Partitions[:0]
		for _, p := range t.Partitions {
			if has(t.Topic, p.Partition) {
				parts = append(parts, p)
			} else {
				failed = append(failed, failure{topic: t.Topic, partition: p.Partition, code: fails})
			}
		}
		if t.Partitions = parts; len(parts) > 0 {
			topics = append(topics, t)
		}
	}
	req.Topics = topics
	return failed
}

// addDeleteFailures adds what the coordinator was not asked for.
func addDeleteFailures(out *kmsg.OffsetDeleteResponse, failed []failure) {
	out.Topics = merged(failed, out.Topics,
		func(f *failure) kmsg.OffsetDeleteResponseTopic { return kmsg.OffsetDeleteResponseTopic{Topic: f.topic} },
		func(f *failure) kmsg.OffsetDeleteResponseTopicPartition {
			return kmsg.OffsetDeleteResponseTopicPartition{Partition: f.partition, ErrorCode: f.code}
		},
		func(t *kmsg.OffsetDeleteResponseTopic) (topicName, *[]kmsg.OffsetDeleteResponseTopicPartition) {
			return topicName{topic: t.Topic}, &t.Partitions
		})
}
