package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// unproduced is a partition of a Produce that did not go to the broker.
type unproduced struct {
	failure
	text string // for people, as Kafka says it; "": the code says all
}

// refuse takes out of a request what its transaction does not take. code gives the codes of package txn, for records
// of a transaction.
func (p *produced) refuse(version int16, req *kmsg.ProduceRequest, code func(string, *kmsg.ProduceRequestTopicPartition) int16) {
	p.takeOut(version, req, func(topic string, at *kmsg.ProduceRequestTopicPartition) (int16, string) {
		if _, is := producerOf(at.Records); !is {
			return 0, ""
		}
		why := code(topic, at)
		if why == 0 {
			return 0, ""
		}
		told := txn.CodeFor(apiProduce, version, why)
		return told, refusalText(why, told)
	})
}

// refusalText says what a code hides that is not of transactions, or not of the client's version.
func refusalText(why, told int16) string {
	switch told {
	case kerr.InvalidTxnState.Code:
		return "Partition was not added to the transaction"
	case kerr.NotEnoughReplicas.Code:
		return "Unable to verify the partition has been added to the transaction. Underlying error: " + kerr.TypedErrorForCode(why).Message
	}
	return ""
}

// refuseAll takes everything out of a request of several producers: Kafka writes nothing of it.
func (p *produced) refuseAll(version int16, req *kmsg.ProduceRequest) {
	const text = "Transactional records contained more than one producer ID"
	code := kerr.InvalidProducerIDMapping.Code
	for i := range p.failed {
		p.failed[i].code, p.failed[i].text = code, text
	}
	p.takeOut(version, req, func(string, *kmsg.ProduceRequestTopicPartition) (int16, string) { return code, text })
}

// takeOut takes out the partitions with a code.
func (p *produced) takeOut(version int16, req *kmsg.ProduceRequest, why func(string, *kmsg.ProduceRequestTopicPartition) (int16, string)) {
	for i := range req.Topics {
		t := &req.Topics[i]
		t.Partitions = slices.DeleteFunc(t.Partitions, func(at kmsg.ProduceRequestTopicPartition) bool {
			code, text := why(t.Topic, &at)
			if code == 0 {
				return false
			}
			f := unproduced{failure{topic: t.Topic, id: t.TopicID, partition: at.Partition, code: code}, text}
			if version >= topicIDs {
				f.topic = ""
			}
			p.failed = append(p.failed, f)
			return true
		})
	}
	req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool { return len(t.Partitions) == 0 })
}

// producedNothing answers a request of which nothing has gone to the broker.
func (k *call) producedNothing(p *produced) *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	p.addFailed(k, resp)
	return resp
}

func (p *produced) addFailed(k *call, resp *kmsg.ProduceResponse) {
	for _, f := range p.failed {
		k.failed(f.code)
		at := kmsg.NewProduceResponseTopicPartition()
		at.Partition, at.ErrorCode, at.BaseOffset, at.LogAppendTime, at.LogStartOffset = f.partition, f.code, -1, -1, -1
		if f.text != "" {
			at.ErrorMessage = &f.text
		}
		i := slices.IndexFunc(resp.Topics, func(t kmsg.ProduceResponseTopic) bool { return t.Topic == f.topic && t.TopicID == f.id })
		if i < 0 {
			i = len(resp.Topics)
			resp.Topics = append(resp.Topics, kmsg.ProduceResponseTopic{Topic: f.topic, TopicID: f.id})
		}
		resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, at)
	}
}
