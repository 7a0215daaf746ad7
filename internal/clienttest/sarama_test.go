package clienttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// saramaLibraries leave out 0.10.2: it speaks that to groups, but its Fetch is older
// than any broker of today serves (oldversions_test.go has its requests).
func saramaLibraries() []library {
	return []library{
		saramaLibrary("sarama", ""), saramaLibrary("sarama-2.4", "2.4.0"),
		saramaLibrary("sarama-2.0", "2.0.0"), saramaLibrary("sarama-1.0", "1.0.0"),
	}
}

// saramaLibrary is sarama at a version of Kafka; empty: the newest it knows.
func saramaLibrary(name, version string) library {
	v := sarama.MaxVersion
	if version != "" {
		var err error
		if v, err = sarama.ParseKafkaVersion(version); err != nil {
			panic(err)
		}
	}
	return library{
		name: name, static: v.IsAtLeast(sarama.V2_3_0_0),
		join:  func(t testing.TB, k *child, s seat) member { return joinSarama(t, k, s, v) },
		admin: func(t testing.TB, k *child) admin { return newSaramaAdmin(t, k, v) },
	}
}

func saramaConfig(v sarama.KafkaVersion, client string) *sarama.Config {
	c := sarama.NewConfig()
	c.Version, c.ClientID = v, client
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = 100, retrySoon
	c.Admin.Retry.Max, c.Admin.Retry.Backoff = 100, retrySoon
	c.Consumer.Retry.Backoff = retrySoon
	c.Consumer.MaxWaitTime = 10 * beat
	c.Consumer.Fetch.Default = 1 << 10 // a few records, that members take turns between their partitions
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Heartbeat.Interval = beat
	c.Consumer.Group.Session.Timeout = session
	c.Consumer.Group.Rebalance.Timeout = rebalance
	c.Consumer.Group.Rebalance.Retry.Max, c.Consumer.Group.Rebalance.Retry.Backoff = 100, retrySoon
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRoundRobin()}
	return c
}

// saramaMember is sarama's handler of a group, too.
type saramaMember struct {
	t       testing.TB
	seat    seat
	version sarama.KafkaVersion
	ask     func(partition int32) int64
	client  sarama.Client
	group   sarama.ConsumerGroup
	end     context.CancelFunc
	done    sync.WaitGroup
	once    sync.Once
	current atomic.Int32
}

func joinSarama(t testing.TB, k *child, s seat, v sarama.KafkaVersion, change ...func(*sarama.Config)) *saramaMember {
	t.Helper()
	c := saramaConfig(v, s.client)
	c.Consumer.Group.InstanceId = s.instance
	for _, f := range change {
		f(c)
	}
	m := &saramaMember{t: t, seat: s, version: v}
	m.ask = m.committed
	var err error
	if m.client, err = sarama.NewClient([]string{k.address}, c); err != nil {
		t.Fatal(err)
	}
	if m.group, err = sarama.NewConsumerGroupFromClient(s.group, m.client); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.current.Store(-1)
	m.done.Go(func() {
		for ctx.Err() == nil {
			if m.group.Consume(ctx, []string{s.topic}, m) != nil && !pause(ctx) {
				return
			}
		}
	})
	t.Cleanup(m.leave)
	return m
}

func (m *saramaMember) Setup(s sarama.ConsumerGroupSession) error {
	m.current.Store(s.GenerationID())
	return nil
}

func (*saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim commits every few records. Sarama does not say whether a commit
// succeeded, so the member asks: what a fetch tells of must not be lost either. Nor does
// sarama repeat a commit that failed, which may have been the last there is to make.
func (m *saramaMember) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	again := time.NewTicker(retrySoon)
	defer again.Stop()
	due := int64(-1) // the offset that is to be committed
	for {
		select {
		case r, open := <-c.Messages():
			if !open {
				return nil
			}
			m.seat.ledger.consumed(r.Partition, r.Offset)
			s.MarkMessage(r, "")
			if r.Offset%5 == 4 || r.Offset+1 == c.HighWaterMarkOffset() {
				due = r.Offset + 1
			}
		case <-again.C:
		case <-s.Context().Done():
			return nil
		}
		if due >= 0 {
			s.Commit()
			at := m.ask(c.Partition())
			m.seat.ledger.acknowledged(c.Partition(), at)
			if at >= due {
				due = -1
			}
		}
	}
}

// committed is what a fetch tells of, and -1 when it tells of nothing.
func (m *saramaMember) committed(partition int32) int64 {
	coordinator, err := m.client.Coordinator(m.seat.group)
	if err != nil {
		return -1
	}
	topic, group := m.seat.topic, m.seat.group
	r, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(m.version, group, map[string][]int32{topic: {partition}}))
	if err != nil {
		_ = coordinator.Close() // sarama opens it again when it is next used
		return -1
	}
	at, err := saramaOffset(r, group, topic, partition)
	if err != nil {
		return -1
	}
	return at.Offset
}

// saramaOffset finds a partition in an answer, which lies elsewhere since v8.
func saramaOffset(r *sarama.OffsetFetchResponse, group, topic string, partition int32) (*sarama.OffsetFetchResponseBlock, error) {
	b := r.GetBlock(topic, partition)
	if r.Version >= 8 {
		for _, g := range r.Groups {
			if g.GroupId == group {
				b = g.Blocks[topic][partition]
			}
		}
	}
	switch {
	case r.GroupError() != sarama.ErrNoError:
		return nil, r.GroupError()
	case b == nil:
		return nil, fmt.Errorf("no answer for %s/%d", topic, partition)
	case b.Err != sarama.ErrNoError:
		return nil, b.Err
	}
	return b, nil
}

// TestCommitsAreRepeated: the commit of the last record failed once, on a connection that
// the kill had ended, and the member never made another.
func TestCommitsAreRepeated(t *testing.T) {
	t.Parallel()
	l, asked := newLedger(), 0
	ctx, end := context.WithTimeout(t.Context(), patience)
	defer end()
	m := &saramaMember{seat: seat{ledger: l}, ask: func(int32) int64 {
		if asked++; asked < 3 {
			return -1
		}
		end()
		return 1
	}}
	records := make(chan *sarama.ConsumerMessage, 1)
	records <- &sarama.ConsumerMessage{}
	s := &countedSession{overSession: overSession{ctx: ctx}}
	if err := m.ConsumeClaim(s, oneClaim{records: records}); err != nil || s.commits != 3 || l.promised()[0] != 1 {
		t.Errorf("%v, %d commits, %v is promised", err, s.commits, l.promised())
	}
}

type countedSession struct {
	overSession
	commits int
}

func (s *countedSession) MarkMessage(*sarama.ConsumerMessage, string) {}
func (s *countedSession) Commit()                                     { s.commits++ }

type oneClaim struct {
	sarama.ConsumerGroupClaim
	records chan *sarama.ConsumerMessage
}

func (c oneClaim) Messages() <-chan *sarama.ConsumerMessage { return c.records }
func (oneClaim) Partition() int32                           { return 0 }
func (oneClaim) HighWaterMarkOffset() int64                 { return 1 }

func (m *saramaMember) leave() {
	m.once.Do(func() {
		m.end()
		m.done.Wait()
		_ = m.group.Close() // kcoord may be dead
	})
}

func (m *saramaMember) generation() int32 { return m.current.Load() }

type saramaAdmin struct {
	sarama.ClusterAdmin
	client  sarama.Client
	version sarama.KafkaVersion
}

func newSaramaAdmin(t testing.TB, k *child, v sarama.KafkaVersion) *saramaAdmin {
	t.Helper()
	config := saramaConfig(v, "test")
	config.Consumer.Return.Errors = true // of the offset manager
	c, err := sarama.NewClient([]string{k.address}, config)
	if err != nil {
		t.Fatal(err)
	}
	a, err := sarama.NewClusterAdminFromClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return &saramaAdmin{a, c, v}
}

func (a *saramaAdmin) describe(group string) (d description, err error) {
	groups, err := a.DescribeConsumerGroups([]string{group})
	if err != nil {
		_ = a.client.RefreshCoordinator(group) // it does not try again by itself
		return d, err
	}
	g := groups[0]
	d.state = g.State
	for _, m := range g.Members {
		one := described{id: m.MemberId, client: m.ClientId}
		if m.GroupInstanceId != nil {
			one.instance = *m.GroupInstanceId
		}
		if asg, err := m.GetMemberAssignment(); err == nil && asg != nil {
			one.partitions = asg.Topics
		}
		if meta, err := m.GetMemberMetadata(); err == nil && meta != nil {
			one.subscribed, one.userData = slices.Sorted(slices.Values(meta.Topics)), meta.UserData
		}
		d.members = append(d.members, one)
	}
	if g.Err != sarama.ErrNoError {
		return d, g.Err
	}
	return d, nil
}

func (a *saramaAdmin) list() (ids []string, err error) {
	groups, err := a.ListConsumerGroups()
	for id := range groups {
		ids = append(ids, id)
	}
	return ids, err
}

// commit goes through sarama's offset manager, which is for consumers without a group.
func (a *saramaAdmin) commit(group, topic string, offsets map[int32]int64, metadata string) error {
	om, err := sarama.NewOffsetManagerFromClient(group, a.client)
	if err != nil {
		return err
	}
	var poms []sarama.PartitionOffsetManager
	for p, o := range offsets {
		pom, err := om.ManagePartition(topic, p)
		if err != nil {
			return errors.Join(err, om.Close())
		}
		pom.MarkOffset(o, metadata)
		pom.ResetOffset(o, metadata) // of the two, the one that moves it
		poms = append(poms, pom)
	}
	om.Commit()
	err = om.Close()
	for _, pom := range poms {
		for e := range pom.Errors() {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (a *saramaAdmin) fetch(group, topic string, partitions int32) (*sarama.OffsetFetchResponse, error) {
	var ps []int32
	for p := range partitions {
		ps = append(ps, p)
	}
	return a.ListConsumerGroupOffsets(group, map[string][]int32{topic: ps})
}

func (a *saramaAdmin) committed(group, topic string, partitions int32) (map[int32]int64, error) {
	r, err := a.fetch(group, topic, partitions)
	if err != nil {
		return nil, err
	}
	m := map[int32]int64{}
	for p := range partitions {
		b, err := saramaOffset(r, group, topic, p)
		if err != nil {
			return nil, err
		}
		if b.Offset >= 0 {
			m[p] = b.Offset
		}
	}
	return m, nil
}

func (a *saramaAdmin) metadata(group, topic string, partition int32) (string, error) {
	r, err := a.fetch(group, topic, partition+1)
	if err != nil {
		return "", err
	}
	b, err := saramaOffset(r, group, topic, partition)
	if err != nil {
		return "", err
	}
	return b.Metadata, nil
}

func (a *saramaAdmin) deleteOffset(group, topic string, partition int32) error {
	return a.DeleteConsumerGroupOffset(group, topic, partition)
}

func (a *saramaAdmin) deleteGroup(group string) error { return a.DeleteConsumerGroup(group) }

func (a *saramaAdmin) remove(group, instance string) error {
	r, err := a.RemoveMemberFromConsumerGroup(group, []string{instance})
	if err != nil {
		return err
	}
	if r.Err != sarama.ErrNoError {
		return r.Err
	}
	if r.Members[0].Err != sarama.ErrNoError {
		return r.Members[0].Err
	}
	return nil
}
