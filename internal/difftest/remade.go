//go:build kafka

package difftest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicKinds are there, too, in a quarter of the sequences: topics of their own, which are deleted and made anew.
var topicKinds = []opKind{{"makeTopic", 8, 0, 0}, {"dropTopic", 8, 0, 0}, {"remakeTopic", 8, 0, 0}, {"growTopic", 4, 0, 0}}

var (
	behindKcoord = flag.String("behind", "", "HOST:PORT of the Kafka behind kcoord; without it no topic is changed past kcoord")
	allRemade    = flag.Bool("topics", false, "each sequence has topics of its own, not only a quarter of them")
)

// remade says whether a sequence has topics of its own.
func remade(seed uint64) bool { return *allRemade || rand.New(rand.NewPCG(seed, 9)).IntN(4) == 0 }

const (
	ownTopics = 2
	// witnesses are groups which show whether offsets of a topic have gone: some in each partition of groups, and the
	// last ones in it, by name.
	witnesses = 12

	topicPatience = 15 * time.Second
)

var targetNames = [2]string{"kafka", "kcoord"}

// ownTopic is a topic that one sequence alone has; the zero id: it does not exist now.
type ownTopic struct {
	id         [16]byte
	partitions int32
}

func (s *sequence) ownName(i int) string { return fmt.Sprint(s.prefix, "t", i) }

func (s *sequence) witness(i int) string { return fmt.Sprint("~", s.prefix, "w", i) }

// ownTopic and ownID are drawn where a sequence has such topics.
func (d *draw) ownTopic() string { return d.s.ownName(d.IntN(ownTopics)) }

// ownID is mostly of a topic that exists, else of one that does no more.
func (d *draw) ownID() [16]byte {
	if n := len(d.t.past); n > 0 && d.IntN(4) == 0 {
		return d.t.past[d.IntN(n)]
	}
	return d.t.own[d.IntN(ownTopics)].id
}

// changeTopic makes, deletes or grows a topic of both targets, asking kcoord or the Kafka behind it, and waits until all
// must know.
func (s *sequence) changeTopic(at int, o op) error {
	r := rand.New(rand.NewPCG(o.seed, 11))
	which, past := r.IntN(ownTopics), r.IntN(2) == 0 && *behindKcoord != ""
	was := s.targets[0].own[which]
	there := was.partitions > 0
	partitions := int32(1 + r.IntN(3))
	switch {
	case there == (o.kind == "makeTopic"):
		return nil
	case o.kind == "dropTopic":
		partitions = 0
	case o.kind == "growTopic":
		partitions += was.partitions
	}
	s.log = append(s.log, fmt.Sprintf("%3d > %s t%d, past kcoord: %t; %d partitions", at, o.kind, which, past, partitions))
	for j := range s.targets {
		if err := s.changeAt(j, which, o.kind, partitions, past); err != nil {
			return fmt.Errorf("%s: %w", targetNames[j], err)
		}
	}
	return nil
}

// changeAt changes a topic of one target.
func (s *sequence) changeAt(j, which int, what string, partitions int32, past bool) error {
	t, name := s.targets[j], s.ownName(which)
	was, addr := t.own[which], t.addr
	if past && j == 1 {
		addr = *behindKcoord
	}
	gone := was.partitions > 0 && what != "growTopic"
	if gone {
		t.ids[fmt.Sprint(name, "#", len(t.past))] = was.id
		t.past = append(t.past, was.id)
		if err := s.bearWitness(j, name, was.partitions, 1); err != nil {
			return err
		}
	}
	t.own[which] = ownTopic{partitions: partitions}
	if err := alter(addr, what, name, partitions); err != nil {
		return err
	}
	if err := s.awaitTopic(j, name, &t.own[which], gone, was.id); err != nil {
		return err
	}
	if delete(t.ids, name); partitions > 0 {
		t.ids[name] = t.own[which].id
	}
	switch {
	case !gone:
		return nil
	case partitions == 0 || past: // kcoord has to find out itself, and may take commits for the earlier topic's until then
		return s.witnessed(j, name, was.partitions, -1)
	}
	if err := s.bearWitness(j, name, partitions, 2); err != nil { // this is the new topic's
		return err
	}
	return s.witnessed(j, name, partitions, 2)
}

// alter asks for the change.
func alter(addr, what, name string, partitions int32) error {
	if what == "growTopic" {
		g := kmsg.NewPtrCreatePartitionsRequest()
		g.Version, g.TimeoutMillis = 3, 5000
		g.Topics = append(g.Topics, kmsg.CreatePartitionsRequestTopic{Topic: name, Count: partitions})
		resp, err := askOnce(addr, g)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
	}
	if what != "makeTopic" {
		d := kmsg.NewPtrDeleteTopicsRequest()
		d.Version, d.TimeoutMillis, d.TopicNames = 5, 5000, []string{name}
		resp, err := askOnce(addr, d)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode); err != nil {
			return err
		}
	}
	if what == "dropTopic" {
		return nil
	}
	c := kmsg.NewPtrCreateTopicsRequest()
	c.Version, c.TimeoutMillis = 7, 5000
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = name, partitions, 1
	c.Topics = append(c.Topics, ct)
	resp, err := askOnce(addr, c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

// awaitTopic waits until a broker shows a topic as it is to be, and notes its id.
func (s *sequence) awaitTopic(j int, name string, t *ownTopic, anew bool, old [16]byte) error {
	m := kmsg.NewPtrMetadataRequest()
	m.Version, m.Topics = 12, []kmsg.MetadataRequestTopic{{Topic: &name}}
	return s.until("another topic is shown", func() (bool, error) {
		resp, err := s.ask(j, m)
		if err != nil {
			return false, err
		}
		mt := resp.(*kmsg.MetadataResponse).Topics[0]
		if t.partitions == 0 {
			return mt.ErrorCode == kerr.UnknownTopicOrPartition.Code, nil
		}
		if mt.ErrorCode != 0 || int32(len(mt.Partitions)) != t.partitions || anew && mt.TopicID == old {
			return false, nil
		}
		for _, p := range mt.Partitions {
			if p.ErrorCode != 0 {
				return false, nil
			}
		}
		t.id = mt.TopicID
		return true, nil
	})
}

// bearWitness commits an offset of each partition to each witness of a target, until it is taken.
func (s *sequence) bearWitness(j int, topic string, partitions int32, offset int64) error {
	for i := range witnesses {
		c := kmsg.NewPtrOffsetCommitRequest()
		c.Version, c.Group, c.Generation = 8, s.witness(i), -1
		ct := kmsg.NewOffsetCommitRequestTopic()
		ct.Topic = topic
		for p := range partitions {
			ct.Partitions = append(ct.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: offset, LeaderEpoch: -1})
		}
		c.Topics = append(c.Topics, ct)
		err := s.until("commits are not taken", func() (bool, error) {
			resp, err := s.ask(j, c)
			if err != nil {
				return false, err
			}
			for _, p := range resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions {
				if p.ErrorCode != 0 {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// witnessed waits until the witnesses have that offset everywhere, at one target.
func (s *sequence) witnessed(j int, topic string, partitions int32, offset int64) error {
	f := kmsg.NewPtrOffsetFetchRequest()
	f.Version = 8
	ft := kmsg.OffsetFetchRequestGroupTopic{Topic: topic}
	for p := range partitions {
		ft.Partitions = append(ft.Partitions, p)
	}
	for i := range witnesses {
		f.Groups = append(f.Groups, kmsg.OffsetFetchRequestGroup{Group: s.witness(i), MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{ft}})
	}
	same := 0
	return s.until(fmt.Sprintf("offsets of a topic that is gone do not become %d", offset), func() (bool, error) {
		resp, err := s.ask(j, f)
		if err != nil {
			return false, err
		}
		same++
		for _, g := range resp.(*kmsg.OffsetFetchResponse).Groups {
			for _, p := range g.Topics[0].Partitions {
				if p.Offset != offset {
					same = 0
				}
			}
		}
		return same > 4, nil
	})
}

// ask asks a target something that is not part of what is compared.
func (s *sequence) ask(j int, req kmsg.Request) (kmsg.Response, error) {
	return askOnce(s.targets[j].addr, req)
}

func askOnce(addr string, req kmsg.Request) (kmsg.Response, error) {
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	return roundTrip(nc, req, encode(req, 0, nil))
}

func (s *sequence) until(otherwise string, done func() (bool, error)) error {
	for deadline := time.Now().Add(topicPatience); ; time.Sleep(10 * time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s %s", topicPatience, otherwise)
		}
	}
}
