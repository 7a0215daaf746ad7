package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator/group"
)

// offsetCommit, by version:
//
//	2–4   a retention time; before and after: -1, as the server has it
//	6     leader epochs; before: -1, unknown
//	7     instance ids
//	9     a group that does not exist is GROUP_ID_NOT_FOUND; before: ILLEGAL_GENERATION
//	10    topics by id (KIP-848)
//
// Partitions that the broker does not have are answered here, and where no other is
// left the group is not asked, as in Kafka: it is neither fenced nor made.
func (k *call) offsetCommit(body []byte) error {
	if err := k.decodeCommit(body); err != nil {
		return err
	}
	k.checkTopics()
	if len(k.commit.req.Topics) == 0 {
		k.answer = shapeCommit
		k.complete(kmsg.NewPtrOffsetCommitResponse(), nil)
		return nil
	}
	k.ask(group.Commit{OffsetCommitRequest: &k.commit.req}, shapeCommit)
	return nil
}

// decodeCommit reads the request. No string lies in the read buffer: topics have the names
// of the view, metadata lies in memory of the commit, which the group copies where it
// keeps it, and the others are the connection's latest.
func (k *call) decodeCommit(body []byte) error {
	m, c, v := &k.commit, k.c, k.version
	m.ready(len(body))
	d := decoder{b: body, flexible: v >= k.api.flexible}
	req := &m.req
	c.group = intern(c.group, d.str())
	generation := d.int32()
	c.member = intern(c.member, d.str())
	c.instance = nilBefore(v, 7, c.instance, &d)
	retention := int64(-1)
	if v <= 4 {
		retention = d.int64()
	}
	req.Version, req.Group, req.Generation, req.MemberID = v, c.group, generation, c.member
	req.InstanceID, req.RetentionTimeMillis = c.instance, retention
	for n := d.length(3); n > 0 && !d.bad; n-- {
		k.decodeCommitTopic(&d)
	}
	d.tags()
	if d.bad {
		return errMalformed
	}
	return nil
}

func (k *call) decodeCommitTopic(d *decoder) {
	m, view := &k.commit, k.c.srv.o.Upstream.Topics()
	m.req.Topics = append(m.req.Topics, kmsg.OffsetCommitRequestTopic{})
	t := &m.req.Topics[len(m.req.Topics)-1]
	var known *upstream.Topic
	if k.version >= 10 {
		copy(t.TopicID[:], d.take(16))
		if known = view.FindID(t.TopicID); known != nil {
			t.Topic = known.Name
		}
	} else {
		name := d.str()
		if known = view.Find(name); known != nil {
			t.Topic, t.TopicID = known.Name, known.ID
		} else {
			t.Topic = string(name)
		}
	}
	m.topics = append(m.topics, known)
	n := d.length(leastPartition)
	// A slab that grows moves: what lies in the old one stays there.
	if at := len(m.parts); cap(m.parts)-at < n {
		m.parts = make([]kmsg.OffsetCommitRequestTopicPartition, 0, max(n, 2*cap(m.parts)))
	}
	if at := len(m.metas); cap(m.metas)-at < n {
		m.metas = make([]string, 0, max(n, 2*cap(m.metas)))
	}
	first := len(m.parts)
	for ; n > 0 && !d.bad; n-- {
		p := kmsg.OffsetCommitRequestTopicPartition{Partition: d.int32(), Offset: d.int64(), Timestamp: -1, LeaderEpoch: -1}
		if k.version >= 6 {
			p.LeaderEpoch = d.int32()
		}
		if b := d.nullable(); b != nil {
			m.metas = append(m.metas, m.keep(b))
			p.Metadata = &m.metas[len(m.metas)-1]
		}
		d.tags()
		m.parts = append(m.parts, p)
	}
	d.tags()
	m.req.Topics[len(m.req.Topics)-1].Partitions = m.parts[first:len(m.parts):len(m.parts)]
}

// checkTopics takes out what the broker does not have. What the view does not
// show, the broker is asked for: the topic may have been made just now.
func (k *call) checkTopics() {
	m := &k.commit
	var unknown int16
	for i := range m.req.Topics {
		if !hasAll(m.topics[i], m.req.Topics[i].Partitions) {
			unknown = k.askForTopics()
			break
		}
	}
	kept := 0
	for i := range m.req.Topics {
		t := m.req.Topics[i]
		t.Partitions = k.checkPartitions(&t, m.topics[i], unknown)
		if len(t.Partitions) > 0 {
			m.req.Topics[kept] = t
			kept++
		}
	}
	clear(m.req.Topics[kept:])
	m.req.Topics = m.req.Topics[:kept]
}

func hasAll(t *upstream.Topic, parts []kmsg.OffsetCommitRequestTopicPartition) bool {
	if t == nil {
		return false
	}
	for i := range parts {
		if !t.Has(parts[i].Partition) {
			return false
		}
	}
	return true
}

// askForTopics asks the broker for the topics that are not known, or that have
// partitions which are not. It returns the code for those that are not known then: 0
// stands for "does not exist". Where the broker cannot be asked, that is
// COORDINATOR_NOT_AVAILABLE, since clients try again after it.
func (k *call) askForTopics() int16 {
	m, view := &k.commit, k.c.srv.o.Upstream.Topics()
	var names []string
	var ids [][16]byte
	for i := range m.req.Topics {
		t := &m.req.Topics[i]
		switch {
		case hasAll(m.topics[i], t.Partitions):
		case k.version >= 10:
			ids = append(ids, t.TopicID)
		default:
			names = append(names, t.Topic)
		}
	}
	err := view.Ask(k.c.context(), names, ids)
	for i := range m.req.Topics {
		t := &m.req.Topics[i]
		switch {
		case hasAll(m.topics[i], t.Partitions):
		case k.version >= 10:
			m.topics[i] = askedID(view, t.TopicID, err)
		default:
			m.topics[i] = asked(view, t.Topic, err)
		}
		if known := m.topics[i]; known != nil {
			t.Topic, t.TopicID = known.Name, known.ID
		}
	}
	return code(err)
}

// asked is what is known of a topic after it was asked for; err: it could not be asked for.
func asked(view *upstream.Topics, name string, err error) *upstream.Topic {
	if err != nil {
		return view.Find([]byte(name))
	}
	return view.Asked(name)
}

func askedID(view *upstream.Topics, id [16]byte, err error) *upstream.Topic {
	if err != nil {
		return view.FindID(id)
	}
	return view.AskedID(id)
}

// checkPartitions returns the partitions that the topic has; the others fail.
func (k *call) checkPartitions(t *kmsg.OffsetCommitRequestTopic, known *upstream.Topic, unknown int16) []kmsg.OffsetCommitRequestTopicPartition {
	if hasAll(known, t.Partitions) {
		return t.Partitions
	}
	fails := unknown
	if fails == 0 {
		fails = codeUnknownTopicOrPartition
		if known == nil && k.version >= 10 {
			fails = codeUnknownTopicID
		}
	}
	if len(t.Partitions) == 0 { // Kafka names a topic that it does not know all the same
		k.commit.failed = append(k.commit.failed, failure{topic: t.Topic, id: t.TopicID, empty: true})
	}
	return slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
		if known != nil && known.Has(p.Partition) {
			return false
		}
		k.commit.failed = append(k.commit.failed, failure{topic: t.Topic, id: t.TopicID, partition: p.Partition, code: fails})
		return true
	})
}

func shapeCommit(k *call, resp group.Response, err error) kmsg.Response {
	var out *kmsg.OffsetCommitResponse
	if err != nil {
		out = k.commitError(code(err))
	} else {
		out = resp.(*kmsg.OffsetCommitResponse)
	}
	for i := range out.Topics {
		t := &out.Topics[i]
		if k.version >= 10 {
			t.TopicID = k.commitID(i, t.Topic)
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if k.version < 9 && p.ErrorCode == codeGroupNotFound {
				p.ErrorCode = codeIllegalGeneration
			}
			k.failed(p.ErrorCode)
		}
	}
	if len(k.commit.failed) > 0 {
		k.addFailures(out)
	}
	return out
}

// addFailures adds what was answered here.
func (k *call) addFailures(out *kmsg.OffsetCommitResponse) {
	for i := range k.commit.failed {
		k.failed(k.commit.failed[i].code)
	}
	out.Topics = merged(k.commit.failed, out.Topics,
		func(f *failure) kmsg.OffsetCommitResponseTopic {
			return kmsg.OffsetCommitResponseTopic{Topic: f.topic, TopicID: f.id}
		},
		func(f *failure) kmsg.OffsetCommitResponseTopicPartition {
			return kmsg.OffsetCommitResponseTopicPartition{Partition: f.partition, ErrorCode: f.code}
		},
		func(t *kmsg.OffsetCommitResponseTopic) (topicName, *[]kmsg.OffsetCommitResponseTopicPartition) {
			if k.version >= 10 {
				return topicName{id: t.TopicID}, &t.Partitions
			}
			return topicName{topic: t.Topic}, &t.Partitions
		})
}

// commitError answers all that the coordinator was asked for with one code.
func (k *call) commitError(code int16) *kmsg.OffsetCommitResponse {
	out := kmsg.NewPtrOffsetCommitResponse()
	for i := range k.commit.req.Topics {
		t := &k.commit.req.Topics[i]
		rt := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
		for j := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: t.Partitions[j].Partition, ErrorCode: code})
		}
		out.Topics = append(out.Topics, rt)
	}
	return out
}

// commitID is the id that the request had for the topic at i of the answer.
func (k *call) commitID(i int, name string) [16]byte {
	topics := k.commit.req.Topics
	if i < len(topics) && topics[i].Topic == name {
		return topics[i].TopicID
	}
	for i := range topics {
		if topics[i].Topic == name {
			return topics[i].TopicID
		}
	}
	return [16]byte{}
}

// nilBefore reads a nullable string where the version has it.
func nilBefore(version, since int16, old *string, d *decoder) *string {
	if version < since {
		return nil
	}
	return internPtr(old, d)
}
