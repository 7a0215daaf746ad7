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
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/marker"
	txnstate "github.com/kcoord/kcoord/coordinator/txn/state"
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

	TxnShards int // transaction.state.log.num.partitions, of which the same holds; 0: as Kafka's
	Txn       txn.Config
	// ProducerIDs and Brokers are the cluster behind, without which no transaction begins
	// and markers are written to groups alone.
	ProducerIDs ProducerIDs
	Brokers     marker.Brokers
	// CoordinatorEpoch goes with markers, and is higher than at any start before.
	CoordinatorEpoch int32
}

// defaultTxnShards is Kafka's.
const defaultTxnShards = 50

type (
	groupRecord = state.Record
	groupShard  = shard.Shard[group.Request, state.Record, group.Response, struct{}]
)

// Node is the coordinator of all groups and transactional ids.
type Node struct {
	o       Options
	bad     quarantine
	badTxns quarantine
	clock   *clock

	shards  []*groupShard
	config  atomic.Pointer[group.Config]
	watched []watchers     // by shard
	tallies []tally        // by shard
	codecs  []*state.Codec // by shard, whose lock guards it

	txns       []*txnShard
	txnTallies []txnTally        // by shard
	txnCodecs  []*txnstate.Codec // by shard, whose lock guards it
	ids        *idPool
	markers    *marker.Sender
	commits    gate[int64]        // offsets on their way to their groups, by producer id
	records    gate[txn.Producer] // records on their way to brokers
	lanes      lanes
	waiting    waitingRoom

	versions versions

	stop chan struct{}
	done sync.WaitGroup
}

// residentOffsets bounds, over all shards, the offsets in memory of groups that
// nobody is in: some 25 MB. Groups with members stay whatever they have.
const residentOffsets = 100_000

// Open starts a node. Its shards open in the background, each at once when a
// request comes for it.
func Open(o Options) (*Node, error) {
	if o.Shards <= 0 {
		return nil, fmt.Errorf("coordinator: %d shards: offsets.topic.num.partitions must be at least 1", o.Shards)
	}
	if o.Group.ResidentOffsets == 0 {
		o.Group.ResidentOffsets = max(residentOffsets/o.Shards, 1000)
	}
	if o.TxnShards == 0 {
		o.TxnShards = defaultTxnShards
	}
	n := &Node{o: o, clock: newClock(o.Shards + o.TxnShards), stop: make(chan struct{}), shards: make([]*groupShard, o.Shards)}
	n.watched, n.tallies = make([]watchers, o.Shards), make([]tally, o.Shards)
	n.config.Store(&o.Group)
	n.bad.log, n.bad.what = o.Log, "group"
	n.badTxns.log, n.badTxns.what = o.Log, "transactional id"
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
	n.ids = newIDPool(o.ProducerIDs, o.Log)
	n.markers = marker.New(marker.Options{
		Brokers: o.Brokers, Group: n.mark, Groups: o.Shards, Report: n.reportMarkers, CoordinatorEpoch: o.CoordinatorEpoch, Log: o.Log,
	})
	n.txns, n.txnTallies, n.txnCodecs = make([]*txnShard, o.TxnShards), make([]txnTally, o.TxnShards), make([]*txnstate.Codec, o.TxnShards)
	for i := range n.txns {
		n.txns[i] = n.newTxnShard(i)
	}
	n.lanes.run(&n.done)
	n.done.Go(n.openAll)
	n.done.Go(func() { n.clock.run(n.stop, n.fire) })
	n.startRewrite()
	return n, nil
}

// openAll opens the shards: those of transactions first, since what they have decided
// holds up groups.
func (n *Node) openAll() {
	stopped := func() bool {
		select {
		case <-n.stop:
			return true
		default:
			return false
		}
	}
	for _, s := range n.txns {
		if stopped() {
			return
		}
		_ = s.Open() // told to Failed; the next request tries again
	}
	for _, s := range n.shards {
		if stopped() {
			return
		}
		_ = s.Open()
	}
}

func (n *Node) fire(i int) {
	if i < len(n.shards) {
		n.shards[i].Fire()
	} else {
		n.txns[i-len(n.shards)].Fire()
	}
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
	all := &gathering[group.Response]{answers: make([]group.Response, len(n.shards)), left: len(n.shards), reply: reply}
	for i, s := range n.shards {
		s.Do(req, func(r group.Response, err error) { all.add(i, r, err) })
	}
}

// gathering collects the answers of several shards.
type gathering[T any] struct {
	mu      sync.Mutex
	answers []T
	left    int
	err     error
	reply   func([]T, error)
}

func (g *gathering[T]) add(i int, r T, err error) {
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

// ForgetTopics deletes the offsets of deleted topics, which are as in group.ForgetTopics, in every group, one group
// after the other. It returns when they are durably gone, and how many there were.
func (n *Node) ForgetTopics(topics map[string][16]byte) (offsets int, err error) {
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
	n.markers.Close()
	n.ids.close()
	n.waiting.close()
	for _, s := range n.txns {
		s.Close()
	}
	for _, s := range n.shards {
		s.Close()
	}
	n.lanes.close()
	n.done.Wait()
}
