package kafka

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator/group"
)

// fetch is what an OffsetFetch's answer needs of the request, and the memory of both, used
// again for the next one.
type fetch struct {
	groups     []kmsg.OffsetFetchRequestGroup
	topics     []kmsg.OffsetFetchRequestGroupTopic // of all groups
	partitions []int32                             // of all topics
	stable     bool
	fails      [][]fetchFailure // by group: topics by id that are not asked for
	lost       []int16          // by group: the code where ids could not be looked up

	answer   kmsg.OffsetFetchResponse
	memory   group.FetchMemory    // of the answer for a single group
	memories []*group.FetchMemory // of those for several
}

// fetchMemories are those that nobody uses.
var fetchMemories = sync.Pool{New: func() any { return new(group.FetchMemory) }}

func (f *fetch) reset() {
	for _, m := range f.memories {
		m.Reset(keptParts)
		fetchMemories.Put(m)
	}
	if max(cap(f.groups), cap(f.topics), cap(f.partitions), cap(f.answer.Groups)) > keptParts {
		*f = fetch{memory: f.memory}
	}
	clear(f.groups)
	clear(f.topics)
	clear(f.answer.Groups)
	f.memory.Reset(keptParts)
	*f = fetch{
		groups: f.groups[:0], topics: f.topics[:0], partitions: f.partitions[:0], memory: f.memory,
		answer: kmsg.OffsetFetchResponse{Groups: f.answer.Groups[:0]},
	}
}

// fetchFailure is a topic that is answered here.
type fetchFailure struct {
	id    [16]byte
	parts []int32
}

// offsetFetch, by version:
//
//	1–7   one group; 1 has no code of its own, so the group's stands at each partition
//	2     null topics mean all
//	5     leader epochs; kmsg leaves them out of older ones
//	7     RequireStable (KIP-447)
//	8     several groups, each asked of its shard
//	9     member id and epoch (KIP-848)
//	10    topics by id
//
// Topics by name need not exist: an offset is kept for them or it is -1. Nor is it given to who asks for
// another topic of its topic's name.
func (k *call) offsetFetch(body []byte) error {
	if err := k.decodeFetch(body); err != nil {
		return err
	}
	f := &k.fetch
	if k.version >= 10 {
		k.namesOfIDs()
	}
	if slices.ContainsFunc(f.groups, func(g kmsg.OffsetFetchRequestGroup) bool { return g.Topics == nil }) {
		k.c.burden(k)
	}
	if len(f.groups) == 1 {
		k.ask(group.Fetch{OffsetFetchRequestGroup: &f.groups[0], RequireStable: f.stable, Memory: &f.memory}, shapeFetch)
		return nil
	}
	reqs := make([]group.Request, 0, len(f.groups))
	f.memories = make([]*group.FetchMemory, 0, len(f.groups))
	for i := range f.groups {
		m := fetchMemories.Get().(*group.FetchMemory)
		f.memories = append(f.memories, m)
		reqs = append(reqs, group.Fetch{OffsetFetchRequestGroup: &f.groups[i], RequireStable: f.stable, Memory: m})
	}
	k.askAll(reqs, shapeFetch)
	return nil
}

// decodeFetch reads the request. A version that has one group has it as the first.
func (k *call) decodeFetch(body []byte) error {
	f, v := &k.fetch, k.version
	d := decoder{b: body, flexible: v >= k.api.flexible}
	if v < 8 {
		k.decodeFetchGroup(&d)
	} else {
		for n := d.length(3); n > 0 && !d.bad; n-- {
			k.decodeFetchGroup(&d)
			d.tags()
		}
	}
	if v >= 7 {
		f.stable = d.bool()
	}
	d.tags()
	if d.bad {
		return errMalformed
	}
	return nil
}

func (k *call) decodeFetchGroup(d *decoder) {
	f := &k.fetch
	g := kmsg.NewOffsetFetchRequestGroup()
	k.c.group = intern(k.c.group, d.str())
	g.Group = k.c.group
	if k.version >= 9 {
		if member := d.nullable(); member != nil {
			g.MemberID = kmsg.StringPtr(string(member))
		}
		g.MemberEpoch = d.int32()
	}
	n, null := d.lengthOrNull(3)
	if null && k.version < 2 {
		d.bad = true
	}
	if !null {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	first := len(f.topics)
	for ; n > 0 && !d.bad; n-- {
		f.topics = append(f.topics, k.decodeFetchTopic(d))
		g.Topics = f.topics[first:len(f.topics):len(f.topics)]
	}
	f.groups = append(f.groups, g)
}

func (k *call) decodeFetchTopic(d *decoder) (t kmsg.OffsetFetchRequestGroupTopic) {
	f := &k.fetch
	if k.version >= 10 {
		copy(t.TopicID[:], d.take(16))
	} else if name := d.str(); !d.bad {
		if known := k.c.srv.o.Upstream.Topics().Find(name); known != nil {
			// Kafka leaves the id out. There the coordinator sees that a topic is deleted; kcoord, when it was
			// down then, would give who reads the new topic of that name the old one's offset.
			t.Topic, t.TopicID = known.Name, known.ID
		} else {
			t.Topic = string(name)
		}
	}
	first := len(f.partitions)
	for n := d.length(4); n > 0 && !d.bad; n-- {
		f.partitions = append(f.partitions, d.int32())
	}
	d.tags()
	t.Partitions = f.partitions[first:len(f.partitions):len(f.partitions)]
	return t
}

// namesOfIDs fills in names, and takes out the topics whose ids nobody has.
func (k *call) namesOfIDs() {
	f := &k.fetch
	f.fails, f.lost = make([][]fetchFailure, len(f.groups)), make([]int16, len(f.groups))
	view := k.c.srv.o.Upstream.Topics()
	known := map[[16]byte]*upstream.Topic{}
	var unknown [][16]byte
	for i := range f.groups {
		for j := range f.groups[i].Topics {
			id := f.groups[i].Topics[j].TopicID
			if known[id] = view.FindID(id); known[id] == nil {
				unknown = append(unknown, id)
			}
		}
	}
	var err error
	if len(unknown) > 0 {
		err = view.Ask(k.c.context(), nil, unknown)
		for _, id := range unknown {
			known[id] = askedID(view, id, err)
		}
	}
	for i := range f.groups {
		g := &f.groups[i]
		kept := g.Topics[:0]
		for _, t := range g.Topics {
			switch topic := known[t.TopicID]; {
			case topic != nil:
				t.Topic = topic.Name
				kept = append(kept, t)
			case err != nil:
				f.lost[i] = codeLoading
			default:
				f.fails[i] = append(f.fails[i], fetchFailure{t.TopicID, t.Partitions})
			}
		}
		g.Topics = kept
	}
}

func shapeFetch(k *call, resp group.Response, err error) kmsg.Response {
	out := &k.fetch.answer
	for i := range k.fetch.groups {
		p := part{resp, err}
		if k.parts != nil {
			p = k.partOr(i, err)
		}
		out.Groups = append(out.Groups, k.fetchedGroup(i, p))
	}
	if k.version < 8 {
		k.soleAnswer(out)
	}
	return out
}

func (k *call) fetchedGroup(i int, p part) kmsg.OffsetFetchResponseGroup {
	g := kmsg.NewOffsetFetchResponseGroup()
	if p.err != nil {
		g.ErrorCode = code(p.err)
	} else {
		g = *p.resp.(*kmsg.OffsetFetchResponseGroup)
	}
	g.Group = k.fetch.groups[i].Group
	if k.version >= 10 && g.ErrorCode == 0 {
		k.idsOfNames(i, &g)
	}
	k.failed(g.ErrorCode)
	return g
}

// idsOfNames shapes a group's answer for version 10. Topics without an id are left
// out where the broker says that they do not exist, and for no other reason: to
// leave out a topic that does exist would send its consumers to their reset policy.
// Where the broker cannot say, the group is loading: clients ask again.
func (k *call) idsOfNames(i int, g *kmsg.OffsetFetchResponseGroup) {
	view := k.c.srv.o.Upstream.Topics()
	fail := func(code int16) { *g = kmsg.OffsetFetchResponseGroup{Group: g.Group, ErrorCode: code} }
	if k.fetch.lost[i] != 0 {
		fail(k.fetch.lost[i])
		return
	}
	var unknown []string
	ids := make([][16]byte, len(g.Topics))
	for j := range g.Topics {
		if ids[j] = k.fetchID(i, view, g.Topics[j].Topic); ids[j] == ([16]byte{}) {
			unknown = append(unknown, g.Topics[j].Topic)
		}
	}
	if len(unknown) > 0 {
		if err := view.Ask(k.c.context(), unknown, nil); err != nil {
			fail(codeLoading)
			return
		}
	}
	topics := make([]kmsg.OffsetFetchResponseGroupTopic, 0, len(g.Topics)+len(k.fetch.fails[i]))
	for j, t := range g.Topics {
		if t.TopicID = ids[j]; t.TopicID == ([16]byte{}) {
			if known := view.Asked(t.Topic); known != nil {
				t.TopicID = known.ID
			}
		}
		if t.TopicID != ([16]byte{}) {
			topics = append(topics, t)
		}
	}
	for _, f := range k.fetch.fails[i] {
		topics = append(topics, unknownFetched(f))
	}
	g.Topics = topics
}

// fetchID is the id of a topic in the answer: the one that was asked for, or
// what the view has.
func (k *call) fetchID(i int, view *upstream.Topics, name string) [16]byte {
	for j := range k.fetch.groups[i].Topics {
		if t := &k.fetch.groups[i].Topics[j]; t.Topic == name {
			return t.TopicID
		}
	}
	if t := view.Find([]byte(name)); t != nil {
		return t.ID
	}
	return [16]byte{}
}

func unknownFetched(f fetchFailure) kmsg.OffsetFetchResponseGroupTopic {
	t := kmsg.NewOffsetFetchResponseGroupTopic()
	t.TopicID = f.id
	for _, n := range f.parts {
		t.Partitions = append(t.Partitions, fetchedNothing(n, codeUnknownTopicID))
	}
	return t
}

func fetchedNothing(partition int32, code int16) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = partition, -1, -1, kmsg.StringPtr(""), code
	return p
}

// soleAnswer moves the answer of one group to where older versions have it.
func (k *call) soleAnswer(out *kmsg.OffsetFetchResponse) {
	g := out.Groups[0]
	out.Groups, out.ErrorCode = nil, g.ErrorCode
	if k.version < 2 && g.ErrorCode != 0 {
		g.Topics = k.fetchError(g.ErrorCode)
	}
	for i := range g.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = g.Topics[i].Topic
		t.Partitions = make([]kmsg.OffsetFetchResponseTopicPartition, 0, len(g.Topics[i].Partitions))
		for _, p := range g.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		out.Topics = append(out.Topics, t)
	}
}

// fetchError has the group's code at every partition that was asked for.
func (k *call) fetchError(code int16) (topics []kmsg.OffsetFetchResponseGroupTopic) {
	for _, t := range k.fetch.groups[0].Topics {
		rt := kmsg.NewOffsetFetchResponseGroupTopic()
		rt.Topic = t.Topic
		for _, n := range t.Partitions {
			rt.Partitions = append(rt.Partitions, fetchedNothing(n, code))
		}
		topics = append(topics, rt)
	}
	return topics
}
