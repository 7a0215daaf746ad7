//go:build kafka

package difftest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// requests make what ops of each kind send.
func requests() map[string]func(*draw) kmsg.Request {
	return map[string]func(*draw) kmsg.Request{
		"join": (*draw).join, "joinAnew": (*draw).joinAnew, "sync": (*draw).sync, "heartbeat": (*draw).heartbeat, "leave": (*draw).leave,
		"commit": (*draw).commit, "fetch": (*draw).fetch, "describe": (*draw).describe, "list": (*draw).list,
		"deleteOffsets": (*draw).deleteOffsets, "delete": (*draw).delete, "find": (*draw).find,
		"init": (*draw).init, "addPartitions": (*draw).addPartitions, "addOffsets": (*draw).addOffsets, "txnCommit": (*draw).txnCommit,
		"endTxn": (*draw).endTxn, "describeTxns": (*draw).describeTxns, "listTxns": (*draw).listTxns,
		"produce": (*draw).produce, "offsets": (*draw).offsets, "read": (*draw).read, "producers": (*draw).describeProducers,
		"markers": (*draw).markers, "markersAhead": (*draw).markersAhead, "unserved": (*draw).unserved,
	}
}

// request makes an op's request for a target.
func (s *sequence) request(o op, t *target) (kmsg.Request, *string) {
	d := &draw{Rand: rand.New(rand.NewPCG(o.seed, 7)), o: o, t: t, s: s, honest: o.seed&1 == 0}
	build := requests()[o.kind]
	if build == nil {
		build = brokersRequests()[o.kind]
	}
	req := build(d)
	if o.kind != "unserved" {
		req.SetVersion(o.version)
	}
	if req.IsFlexible() && d.odd(8) {
		d.tag(reflect.ValueOf(req).Elem())
	}
	client := kmsg.StringPtr(fmt.Sprint("client", o.slot))
	if d.odd(20) {
		client = pick(d, nil, kmsg.StringPtr(""), kmsg.StringPtr(strings.Repeat("c", 32000)), kmsg.StringPtr("c\xff"))
	}
	return req, client
}

// tag adds tags that nobody knows, to a message and to what it holds.
func (d *draw) tag(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if f := v.FieldByName("UnknownTags"); f.IsValid() && d.IntN(2) == 0 {
			tags, _ := f.Addr().Interface().(*kmsg.Tags)
			for _, n := range []uint32{100, 1 << 20}[:1+d.IntN(2)] {
				tags.Set(n, bytes.Repeat([]byte{7}, d.IntN(300)))
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				d.tag(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.tag(v.Index(i))
		}
	}
}

func (d *draw) join() kmsg.Request {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.MemberID, r.InstanceID = d.group(), d.member(), d.instance()
	if d.o.version < 5 {
		r.InstanceID = nil
	}
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 30_000, 60_000
	if d.s.timed && d.o.slot >= d.s.patient {
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = shortSession, shortRebalance
	}
	r.Reason = d.reason()
	if d.odd(20) {
		r.SessionTimeoutMillis = pick[int32](d, -1, 0, 499, 500, 1_800_000, 1_800_001, 1<<31-1)
	}
	r.ProtocolType, r.Protocols = d.protocolType(), d.protocols()
	if r.MemberID != "" && d.IntN(3) == 0 && d.t.slots[d.o.slot].member == r.MemberID {
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("same")}}
	}
	return r
}

// joinAnew is the join of a client that has just started.
func (d *draw) joinAnew() kmsg.Request {
	r := d.join().(*kmsg.JoinGroupRequest)
	r.MemberID = ""
	return r
}

func (d *draw) reason() *string {
	return pick(d, nil, kmsg.StringPtr(""), kmsg.StringPtr("why"), kmsg.StringPtr(strings.Repeat("why", 200)))
}

func (d *draw) sync() kmsg.Request {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.Generation, r.MemberID, r.InstanceID = d.group(), d.generation(), d.member(), d.instance()
	typ := d.protocolType()
	r.ProtocolType, r.Protocol = &typ, d.t.slots[d.o.slot].protocol
	if d.odd(10) {
		r.ProtocolType = pick(d, nil, kmsg.StringPtr(""), kmsg.StringPtr("wrong"))
	}
	if d.odd(10) {
		r.Protocol = pick(d, nil, kmsg.StringPtr(""), kmsg.StringPtr("wrong"), kmsg.StringPtr("range"))
	}
	for i := range d.t.slots {
		if d.odd(6) {
			continue
		}
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = d.t.slots[i].member, []byte{byte(i), byte(d.IntN(3))}
		r.GroupAssignment = append(r.GroupAssignment, a)
	}
	if d.odd(10) {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: d.member(), MemberAssignment: []byte("again")})
	}
	return r
}

func (d *draw) heartbeat() kmsg.Request {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Group, r.Generation, r.MemberID, r.InstanceID = d.group(), d.generation(), d.member(), d.instance()
	return r
}

func (d *draw) leave() kmsg.Request {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Group, r.MemberID = d.group(), d.member()
	if d.o.seed == 2 { // the end of a sequence
		for i := range d.t.slots {
			r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: d.t.slots[i].member})
		}
		r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{InstanceID: kmsg.StringPtr("i3")}, kmsg.LeaveGroupRequestMember{InstanceID: kmsg.StringPtr("i4")})
		return r
	}
	for range d.IntN(3) + 1 {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID, m.Reason = d.member(), d.instance(), d.reason()
		if d.odd(4) {
			m.MemberID = ""
		}
		r.Members = append(r.Members, m)
	}
	if d.odd(15) {
		r.Members = nil
	}
	return r
}

func (d *draw) commit() kmsg.Request {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.Generation, r.MemberID, r.InstanceID = d.group(), d.generation(), d.member(), d.instance()
	if d.odd(5) {
		r.Generation, r.MemberID, r.InstanceID = -1, "", nil
	}
	r.RetentionTimeMillis = pick[int64](d, -1, -1, -1, -1, 1<<40, 1<<62, -2, 0)
	for range d.IntN(3) + 1 {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = d.topic(), d.topicID()
		for range d.IntN(4) {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch = d.partition(), int64(d.IntN(1000)), int32(d.IntN(3)-1)
			if d.odd(8) {
				p.Offset = pick[int64](d, -1, -2, 1<<63-1, -1<<63)
			}
			if d.odd(10) {
				p.LeaderEpoch = pick[int32](d, -2, 1<<31-1)
			}
			p.Metadata = pick(d, nil, kmsg.StringPtr(""), kmsg.StringPtr("meta"), kmsg.StringPtr("m2"))
			if d.odd(8) {
				w := d.weird()
				p.Metadata = &w
			}
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	if d.odd(30) {
		r.Topics = nil
	}
	return r
}

func (d *draw) fetch() kmsg.Request {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.RequireStable = d.IntN(2) == 0
	for range pick(d, 1, 1, 2, 3, 0) {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = d.group()
		g.MemberEpoch = -1
		if d.odd(4) {
			m := d.member()
			g.MemberID, g.MemberEpoch = &m, pick(d, d.generation(), -1)
		}
		for range d.IntN(4) {
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.TopicID = d.topic(), d.topicID()
			for range d.IntN(4) {
				t.Partitions = append(t.Partitions, d.partition())
			}
			g.Topics = append(g.Topics, t)
		}
		if g.Topics != nil && d.o.version < 2 || d.IntN(2) == 0 && d.o.version < 8 {
			g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: "dt-a", Partitions: []int32{0, 1, 2, 3}})
		}
		r.Groups = append(r.Groups, g)
	}
	if d.o.version < 8 {
		if len(r.Groups) == 0 {
			r.Groups = append(r.Groups, kmsg.OffsetFetchRequestGroup{Group: d.group()})
		}
		r.Group = r.Groups[0].Group
		for _, t := range r.Groups[0].Topics {
			r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
	}
	return r
}

func (d *draw) describe() kmsg.Request {
	r := kmsg.NewPtrDescribeGroupsRequest()
	r.IncludeAuthorizedOperations = d.IntN(2) == 0
	for range pick(d, 1, 1, 2, 3, 0) {
		r.Groups = append(r.Groups, d.group())
	}
	return r
}

func (d *draw) list() kmsg.Request {
	r := kmsg.NewPtrListGroupsRequest()
	for range pick(d, 0, 0, 1, 2) {
		r.StatesFilter = append(r.StatesFilter, pick(d, "Empty", "stable", "PREPARINGREBALANCE", "CompletingRebalance", "Dead", "junk", "", " Stable ", "unknown"))
	}
	for range pick(d, 0, 0, 0, 1, 2) {
		r.TypesFilter = append(r.TypesFilter, pick(d, "classic", "Classic", "consumer", "junk", "", "unknown", "CLASSIC "))
	}
	return r
}

func (d *draw) deleteOffsets() kmsg.Request {
	r := kmsg.NewPtrOffsetDeleteRequest()
	r.Group = d.group()
	for range d.IntN(3) {
		t := kmsg.NewOffsetDeleteRequestTopic()
		t.Topic = d.topic()
		for range d.IntN(4) {
			p := kmsg.NewOffsetDeleteRequestTopicPartition()
			p.Partition = d.partition()
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func (d *draw) delete() kmsg.Request {
	r := kmsg.NewPtrDeleteGroupsRequest()
	for range pick(d, 1, 1, 2, 3, 0) {
		r.Groups = append(r.Groups, d.group())
	}
	return r
}

func (d *draw) find() kmsg.Request {
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.CoordinatorType = pick[int8](d, 0, 0, 1, 3, -1)
	r.CoordinatorKey = d.group()
	for range pick(d, 1, 2, 3, 0) {
		r.CoordinatorKeys = append(r.CoordinatorKeys, d.group())
	}
	return r
}

// unserved is a request of a version that Kafka does not know, no longer or not yet.
func (d *draw) unserved() kmsg.Request {
	build := requests()
	known := slices.DeleteFunc(slices.Concat(kinds, txnKinds), func(k opKind) bool { return build[k.name] == nil || k.name == "unserved" })
	k := known[d.IntN(len(known))]
	req := build[k.name](d)
	req.SetVersion(pick(d, k.min-1, k.max+1, 1<<15-1))
	return req
}
