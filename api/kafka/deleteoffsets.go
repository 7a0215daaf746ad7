package kafka

import (
	"slices"

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

// addDeleteFailures adds what the coordinator was not asked for. Of several entries of a topic it makes one, as
// Kafka does where partitions failed.
func addDeleteFailures(out *kmsg.OffsetDeleteResponse, failed []failure) {
	answered := out.Topics
	out.Topics = make([]kmsg.OffsetDeleteResponseTopic, 0, len(answered)+len(failed))
	add := func(topic string, parts ...kmsg.OffsetDeleteResponseTopicPartition) {
		for i := range out.Topics {
			if t := &out.Topics[i]; t.Topic == topic {
				t.Partitions = append(t.Partitions, parts...)
				return
			}
		}
		out.Topics = append(out.Topics, kmsg.OffsetDeleteResponseTopic{Topic: topic, Partitions: slices.Clip(parts)})
	}
	for _, t := range answered {
		add(t.Topic, t.Partitions...)
	}
	for _, f := range failed {
		if f.empty {
			add(f.topic)
		} else {
			add(f.topic, kmsg.OffsetDeleteResponseTopicPartition{Partition: f.partition, ErrorCode: f.code})
		}
	}
}
