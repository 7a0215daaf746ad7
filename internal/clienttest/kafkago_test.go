package clienttest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
)

// kafkaGoLibrary is segmentio's kafka-go, whose versions of the protocol are fixed.
// Its Reader commits what it has read in an earlier generation under the present
// one, which may take offsets back; the members here use what lies below it, and
// TestKafkaGoReader the Reader.
func kafkaGoLibrary() library {
	return library{
		name:  "kafka-go",
		join:  func(t testing.TB, k *child, s seat) member { return joinKafkaGo(t, k, s) },
		admin: func(t testing.TB, k *child) admin { return newKafkaGoAdmin(t, k) },
	}
}

const slowBeat = 10 * beat

type kafkaGoMember struct {
	seat    seat
	brokers []string
	dialer  *kafka.Dialer
	group   *kafka.ConsumerGroup
	end     context.CancelFunc
	done    sync.WaitGroup
	once    sync.Once
	current atomic.Int32

	// Where two wait for an answer on one of its connections they spin, and both
	// cores with them: hence this, and slowBeat.
	committing sync.Mutex
}

func joinKafkaGo(t testing.TB, k *child, s seat) *kafkaGoMember {
	t.Helper()
	m := &kafkaGoMember{seat: s, brokers: []string{k.address}, dialer: &kafka.Dialer{ClientID: s.client, Timeout: session}}
	var err error
	m.group, err = kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: s.group, Brokers: m.brokers, Topics: []string{s.topic}, Dialer: m.dialer, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: slowBeat, RebalanceTimeout: rebalance,
		SessionTimeout:   forgotten, // after a kill it joins as somebody else, and leaves its former self to the timeout
		JoinGroupBackoff: retrySoon,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.current.Store(-1)
	m.done.Go(func() { m.run(ctx) })
	t.Cleanup(m.leave)
	return m
}

func (m *kafkaGoMember) run(ctx context.Context) {
	for ctx.Err() == nil {
		g, err := m.group.Next(ctx)
		if err != nil {
			pause(ctx)
			continue
		}
		m.current.Store(g.ID)
		for _, a := range g.Assignments[m.seat.topic] {
			g.Start(func(ctx context.Context) { m.consume(ctx, g, a) })
		}
	}
}

// consume commits every record, in the generation that the partition was given in, until
// it is committed or the generation is over.
func (m *kafkaGoMember) consume(ctx context.Context, g *kafka.Generation, a kafka.PartitionAssignment) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: m.brokers, Topic: m.seat.topic, Partition: a.ID, Dialer: m.dialer,
		MaxWait: 10 * beat, ReadBatchTimeout: 10 * beat, ReadLagInterval: -1, ReadBackoffMin: retrySoon, ReadBackoffMax: retrySoon,
	})
	defer r.Close()
	if r.SetOffset(a.Offset) != nil {
		return
	}
	for ctx.Err() == nil {
		msg, err := r.ReadMessage(ctx)
		if err != nil {
			pause(ctx)
			continue
		}
		m.seat.ledger.consumed(int32(msg.Partition), msg.Offset)
		for err = m.commit(g, msg); err != nil && pause(ctx); err = m.commit(g, msg) {
		}
		if err == nil {
			m.seat.ledger.acknowledged(int32(msg.Partition), msg.Offset+1)
		}
	}
}

func (m *kafkaGoMember) commit(g *kafka.Generation, msg kafka.Message) error {
	m.committing.Lock()
	defer m.committing.Unlock()
	return g.CommitOffsets(map[string]map[int]int64{msg.Topic: {msg.Partition: msg.Offset + 1}})
}

func (m *kafkaGoMember) leave() {
	m.once.Do(func() {
		m.end()
		m.done.Wait()
		_ = m.group.Close() // kcoord may be dead
	})
}

func (m *kafkaGoMember) generation() int32 { return m.current.Load() }

type kafkaGoAdmin struct {
	t testing.TB
	c *kafka.Client
}

func newKafkaGoAdmin(t testing.TB, k *child) *kafkaGoAdmin {
	address, err := net.ResolveTCPAddr("tcp", k.address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{ClientID: "test"}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafkaGoAdmin{t, &kafka.Client{Addr: address, Timeout: session, Transport: transport}}
}

func (a *kafkaGoAdmin) describe(group string) (d description, err error) {
	r, err := a.c.DescribeGroups(a.t.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return d, err
	}
	g := r.Groups[0]
	d.state = g.GroupState
	for _, m := range g.Members {
		one := described{id: m.MemberID, client: m.ClientID, partitions: map[string][]int32{}, userData: m.MemberMetadata.UserData}
		for _, t := range m.MemberAssignments.Topics {
			for _, p := range t.Partitions {
				one.partitions[t.Topic] = append(one.partitions[t.Topic], int32(p))
			}
		}
		one.subscribed = slices.Sorted(slices.Values(m.MemberMetadata.Topics))
		d.members = append(d.members, one)
	}
	return d, g.Error
}

func (a *kafkaGoAdmin) list() (ids []string, err error) {
	r, err := a.c.ListGroups(a.t.Context(), &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	for _, g := range r.Groups {
		ids = append(ids, g.GroupID)
	}
	return ids, r.Error
}

func (a *kafkaGoAdmin) commit(group, topic string, offsets map[int32]int64, metadata string) error {
	var commits []kafka.OffsetCommit
	for p, o := range offsets {
		commits = append(commits, kafka.OffsetCommit{Partition: int(p), Offset: o, Metadata: metadata})
	}
	r, err := a.c.OffsetCommit(a.t.Context(), &kafka.OffsetCommitRequest{
		GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: commits},
	})
	if err != nil {
		return err
	}
	for _, p := range r.Topics[topic] {
		err = errors.Join(err, p.Error)
	}
	return err
}

func (a *kafkaGoAdmin) fetch(group, topic string, partitions int32) ([]kafka.OffsetFetchPartition, error) {
	var ps []int
	for p := range partitions {
		ps = append(ps, int(p))
	}
	r, err := a.c.OffsetFetch(a.t.Context(), &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: ps}})
	if err != nil {
		return nil, err
	}
	for _, p := range r.Topics[topic] {
		r.Error = errors.Join(r.Error, p.Error)
	}
	return r.Topics[topic], r.Error
}

func (a *kafkaGoAdmin) committed(group, topic string, partitions int32) (map[int32]int64, error) {
	ps, err := a.fetch(group, topic, partitions)
	m := map[int32]int64{}
	for _, p := range ps {
		if p.CommittedOffset >= 0 {
			m[int32(p.Partition)] = p.CommittedOffset
		}
	}
	return m, err
}

func (a *kafkaGoAdmin) metadata(group, topic string, partition int32) (string, error) {
	ps, err := a.fetch(group, topic, partition+1)
	for _, p := range ps {
		if p.Partition == int(partition) {
			return p.Metadata, err
		}
	}
	return "", err
}

func (a *kafkaGoAdmin) deleteOffset(group, topic string, partition int32) error {
	r, err := a.c.OffsetDelete(a.t.Context(), &kafka.OffsetDeleteRequest{
		GroupID: group, Topics: map[string][]int{topic: {int(partition)}},
	})
	if err != nil {
		return err
	}
	for _, p := range r.Topics[topic] {
		r.Error = errors.Join(r.Error, p.Error)
	}
	return r.Error
}

func (a *kafkaGoAdmin) deleteGroup(group string) error {
	r, err := a.c.DeleteGroups(a.t.Context(), &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return r.Errors[group]
}
