package coordinator

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/shard"
	"github.com/kcoord/kcoord/storage"
)

// Options says what a node is made of.
type Options struct {
	Backend storage.Backend
	Shards  int // offsets.topic.num.partitions; must be what it was when the backend's folder was made
	Group   group.Config
	Log     zerolog.Logger

	// Checkpoint copies the backend into a folder, and returns the size. Downgrades is
	// where such folders go, and reports of what downgrades lose. Without them nothing
	// that loses anything can be forced.
	Checkpoint func(dir string) (bytes int64, err error)
	Downgrades string
}

type (
	groupRecord = state.Record
	groupShard  = shard.Shard[group.Request, state.Record, group.Response, struct{}]
)

// Node is the coordinator of all groups.
type Node struct {
	o     Options
	bad   quarantine
	clock *clock

	shards  []*groupShard
	config  atomic.Pointer[group.Config]
	watched []watchers     // by shard
	tallies []tally        // by shard
	codecs  []*state.Codec // by shard, whose lock guards it

	versions versions

	stop chan struct{}
	done sync.WaitGroup
}

// residentOffsets bounds, over all shards, the offsets in memory of groups that
// nobody is in: some 100 MB.
const residentOffsets = 400_000

// Open starts a node. Its shards open in the background, each at once when a
// request comes for it.
func Open(o Options) (*Node, error) {
	if o.Shards <= 0 {
		return nil, fmt.Errorf("coordinator: %d shards: offsets.topic.num.partitions must be at least 1", o.Shards)
	}
	if o.Group.ResidentOffsets == 0 {
		o.Group.ResidentOffsets = max(residentOffsets/o.Shards, 1000)
	}
	n := &Node{o: o, clock: newClock(o.Shards), stop: make(chan struct{}), shards: make([]*groupShard, o.Shards)}
	n.watched, n.tallies = make([]watchers, o.Shards), make([]tally, o.Shards)
	n.config.Store(&o.Group)
	n.bad.log = o.Log
	if err := n.openVersions(); err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	n.codecs = make([]*state.Codec, o.Shards)
	for i := range n.shards {
		n.codecs[i] = &state.Codec{Unreadable: n.bad.add, Versions: n.Finalized().writes()}
		n.shards[i] = shard.New(shard.Options[group.Request, state.Record, group.Response, struct{}]{
			ID:      storage.ShardID(i),
			Backend: o.Backend,
			Codec:   n.codecs[i],
			New: func() groupMachine {
				m := group.New(*n.config.Load(), rand.Reader)
				n.tallies[i].begin(m)
				return m
			},
			Now:    time.Now,
			Passed: n.clock.passed,
			Timer:  func(at time.Time) { n.clock.set(i, at) },
			Stepped: func(m groupMachine) {
				open, _ := m.(*group.Machine)
				n.watched[i].stepped(open)
			},
			Opened: n.tallies[i].opened,
			Failed: func(err error) { o.Log.Error().Err(err).Msg("a shard failed; its groups are asked to try again") },
		})
	}
	n.done.Go(func() {
		for _, s := range n.shards {
			select {
			case <-n.stop:
				return
			default:
				_ = s.Open() // told to Failed; the next request tries again
			}
		}
	})
	n.done.Go(func() { n.clock.run(n.stop, func(i int) { n.shards[i].Fire() }) })
	n.startRewrite()
	return n, nil
}

// Group asks the shard of a request's group. reply is called exactly once, maybe
// before Group returns; it must not block.
func (n *Node) Group(req group.Request, reply func(group.Response, error)) {
	id, _ := req.Entity()
	n.shards[ShardOf(id, len(n.shards))].Do(req, reply)
}

// EachGroup asks every shard. reply gets the answers in the order of the shards,
// or the first error.
func (n *Node) EachGroup(req group.Request, reply func([]group.Response, error)) {
	all := &gathering{answers: make([]group.Response, len(n.shards)), left: len(n.shards), reply: reply}
	for i, s := range n.shards {
		s.Do(req, func(r group.Response, err error) { all.add(i, r, err) })
	}
}

// gathering collects the answers of several shards.
type gathering struct {
	mu      sync.Mutex
	answers []group.Response
	left    int
	err     error
	reply   func([]group.Response, error)
}

func (g *gathering) add(i int, r group.Response, err error) {
	g.mu.Lock()
	g.answers[i] = r
	if err != nil && g.err == nil {
		g.err = err
	}
	g.left--
	last := g.left == 0
	g.mu.Unlock()
	switch {
	case !last:
	case g.err != nil:
		g.reply(nil, g.err)
	default:
		g.reply(g.answers, nil)
	}
}

// Configure changes the settings of groups from the next request on.
func (n *Node) Configure(c group.Config) {
	c.ResidentOffsets = n.o.Group.ResidentOffsets
	n.config.Store(&c)
	for _, s := range n.shards {
		s.Adjust(func(m groupMachine) {
			if open, is := m.(*group.Machine); is {
				open.Configure(c)
			}
		})
	}
}

// ForgetTopics deletes the offsets of deleted topics in every group, one group
// after the other. It returns when they are durably gone, and how many there were.
func (n *Node) ForgetTopics(topics []string) (offsets int, err error) {
	for _, s := range n.shards {
		ids, err := ask[[]string](s, group.IDs{})
		if err != nil {
			return offsets, err
		}
		for _, id := range ids {
			gone, err := ask[group.ForgottenTopics](s, group.ForgetTopics{Group: id, Topics: topics})
			if err != nil {
				return offsets, err
			}
			offsets += gone.Offsets
		}
	}
	return offsets, nil
}

// ask asks one shard and waits.
func ask[T group.Response](s *groupShard, req group.Request) (T, error) {
	type answer struct {
		r   group.Response
		err error
	}
	ch := make(chan answer, 1)
	s.Do(req, func(r group.Response, err error) { ch <- answer{r, err} })
	a := <-ch
	if a.err != nil {
		var none T
		return none, a.err
	}
	return a.r.(T), nil
}

// Close stops the timers and tells all that wait ErrNotCoordinator. The backend
// stays open; its owner closes it afterwards.
func (n *Node) Close() {
	close(n.stop)
	for _, s := range n.shards {
		s.Close()
	}
	n.done.Wait()
}
