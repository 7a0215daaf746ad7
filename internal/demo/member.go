package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// member is one consumer of the group: a franz-go client as any application has one.
type member struct {
	name   string
	client *kgo.Client
	ledger *ledger

	mu        sync.Mutex
	assigned  map[int32]bool
	commitCtx context.Context // of the commit in flight
	dropped   context.CancelFunc

	end  context.CancelFunc
	done sync.WaitGroup
}

// perPoll is small so that there are many commits.
const perPoll = 5

func newMember(name, address string, l *ledger) (*member, error) {
	m := &member{name: name, ledger: l, assigned: map[int32]bool{}}
	change := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, which map[string][]int32) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, p := range which[topic] {
				m.assigned[p] = owned
			}
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ClientID(name),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.FetchMaxPartitionBytes(batchBytes),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)),
	)
	if err != nil {
		return nil, fmt.Errorf("demo: member %s: %w", name, err)
	}
	ctx, end := context.WithCancel(context.Background())
	m.client, m.end = client, end
	m.allowCommits()
	m.done.Go(func() { m.run(ctx) })
	return m, nil
}

// run consumes, and commits what it has consumed, until the member is stopped.
// It begins to consume when commits are let through, so that nothing was consumed
// while partitions moved. A commit that fails is not sent again: a later one covers it.
func (m *member) run(ctx context.Context) {
	for m.ledger.pass(ctx) {
		records := m.client.PollRecords(ctx, perPoll).Records()
		m.ledger.consumed(records)
		if !m.ledger.pass(ctx) {
			return
		}
		if len(records) == 0 {
			continue
		}
		m.mu.Lock()
		commit := m.commitCtx
		m.mu.Unlock()
		m.ledger.send(records)
		m.ledger.settle(records, m.client.CommitRecords(commit, records...))
	}
}

// dropCommit gives up a commit in flight, which the client would otherwise send again.
func (m *member) dropCommit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped()
}

func (m *member) allowCommits() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commitCtx, m.dropped = context.WithCancel(context.Background())
}

// owned is how many partitions the member has.
func (m *member) owned() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, yes := range m.assigned {
		if yes {
			n++
		}
	}
	return n
}

func (m *member) stop() {
	m.end()
	m.dropCommit()
	m.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // kcoord may be dead
	defer cancel()
	_ = m.client.LeaveGroupContext(ctx) // the group is of no use any more
	m.client.CloseAllowingRebalance()
}
