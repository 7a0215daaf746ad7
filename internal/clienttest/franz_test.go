package clienttest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// franz is franz-go, speaking as it would to a Kafka of a version; empty: the newest it knows.
func franz(name, version string) library {
	var opts []kgo.Opt
	if version != "" {
		opts = append(opts, kgo.MaxVersions(kversion.FromString(version)))
	}
	static := version != "1.0" // JoinGroup v5 came with 2.3
	return library{
		name: name, static: static,
		join:  func(t testing.TB, k *child, s seat) member { return joinFranz(t, k, s, opts...) },
		admin: func(t testing.TB, k *child) admin { return &franzAdmin{t, kadm.NewClient(k.client())} },
	}
}

type franzMember struct {
	client *kgo.Client
	end    context.CancelFunc
	done   sync.WaitGroup
	once   sync.Once
}

func joinFranz(t testing.TB, k *child, s seat, opts ...kgo.Opt) *franzMember {
	t.Helper()
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(k.address), kgo.ClientID(s.client),
		kgo.ConsumerGroup(s.group), kgo.ConsumeTopics(s.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.HeartbeatInterval(beat), kgo.SessionTimeout(session), kgo.RebalanceTimeout(rebalance),
		kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(retrySoon), kgo.FetchMaxWait(10 * beat),
	}, opts...)
	if s.instance != "" {
		opts = append(opts, kgo.InstanceID(s.instance))
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m := &franzMember{client: c, end: end}
	m.done.Go(func() { m.run(ctx, s.topic, s.ledger) })
	t.Cleanup(m.leave)
	return m
}

// run commits what it has polled, and what it could not commit before.
func (m *franzMember) run(ctx context.Context, topic string, l *ledger) {
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, 5*beat)
		for _, r := range m.client.PollRecords(poll, 5).Records() {
			l.consumed(r.Partition, r.Offset)
		}
		cancel()
		_ = m.client.CommitUncommittedOffsets(ctx) // what failed is committed next time
		for p, o := range m.client.CommittedOffsets()[topic] {
			l.acknowledged(p, o.Offset)
		}
		m.client.AllowRebalance()
	}
}

func (m *franzMember) leave() {
	m.once.Do(func() {
		m.end()
		m.done.Wait()
		// kcoord may be dead, for good.
		ctx, cancel := context.WithTimeout(context.Background(), session)
		defer cancel()
		_ = m.client.LeaveGroupContext(ctx) // which static members do not
		m.client.CloseAllowingRebalance()
	})
}

func (m *franzMember) generation() int32 {
	_, g := m.client.GroupMetadata()
	return g
}

type franzAdmin struct {
	t testing.TB
	c *kadm.Client
}

func (a *franzAdmin) describe(group string) (d description, err error) {
	groups, err := a.c.DescribeGroups(a.t.Context(), group)
	if err != nil {
		return d, err
	}
	g := groups[group]
	d.state = g.State
	for _, m := range g.Members {
		one := described{id: m.MemberID, client: m.ClientID, partitions: map[string][]int32{}}
		if m.InstanceID != nil {
			one.instance = *m.InstanceID
		}
		if c, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range c.Topics {
				one.partitions[t.Topic] = t.Partitions
			}
		}
		if c, ok := m.Join.AsConsumer(); ok {
			one.subscribed, one.userData = slices.Sorted(slices.Values(c.Topics)), c.UserData
		}
		d.members = append(d.members, one)
	}
	return d, g.Err
}

func (a *franzAdmin) list() ([]string, error) {
	groups, err := a.c.ListGroups(a.t.Context())
	return groups.Groups(), err
}

func (a *franzAdmin) commit(group, topic string, offsets map[int32]int64, metadata string) error {
	var os kadm.Offsets
	for p, o := range offsets {
		os.Add(kadm.Offset{Topic: topic, Partition: p, At: o, LeaderEpoch: -1, Metadata: metadata})
	}
	return a.c.CommitAllOffsets(a.t.Context(), group, os)
}

func (a *franzAdmin) committed(group, topic string, _ int32) (map[int32]int64, error) {
	os, err := a.c.FetchOffsets(a.t.Context(), group)
	if err != nil {
		return nil, err
	}
	m := map[int32]int64{}
	for p, o := range os[topic] {
		if o.Err != nil {
			return nil, o.Err
		}
		m[p] = o.At
	}
	return m, nil
}

func (a *franzAdmin) metadata(group, topic string, partition int32) (string, error) {
	os, err := a.c.FetchOffsets(a.t.Context(), group)
	if err != nil {
		return "", err
	}
	o, _ := os.Lookup(topic, partition)
	return o.Metadata, o.Err
}

func (a *franzAdmin) deleteOffset(group, topic string, partition int32) error {
	var set kadm.TopicsSet
	set.Add(topic, partition)
	rs, err := a.c.DeleteOffsets(a.t.Context(), group, set)
	if err != nil {
		return err
	}
	return rs.Error()
}

func (a *franzAdmin) deleteGroup(group string) error {
	r, err := a.c.DeleteGroup(a.t.Context(), group)
	if err != nil {
		return err
	}
	return r.Err
}

func (a *franzAdmin) remove(group, instance string) error {
	rs, err := a.c.LeaveGroup(a.t.Context(), kadm.LeaveGroup(group).InstanceIDs(instance))
	if err != nil {
		return err
	}
	return rs.Error()
}
