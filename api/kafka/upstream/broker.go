package upstream

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrUnavailable says that the broker could not be asked, so that nothing is
// known about what was asked for.
var ErrUnavailable = errors.New("upstream: the broker cannot be reached")

// Options say where the broker is. The zero values of durations are the defaults.
type Options struct {
	Addr string                                      // host:port of the broker
	Dial func(ctx context.Context) (net.Conn, error) // another way to it, instead of Addr
	// Seeds are brokers to begin with, host:port each, of a cluster that has a
	// gateway in front: then whichever broker can be reached is asked. nil: there is
	// one broker behind, and Addr or Dial says where.
	Seeds []string
	// DialTo is another way to a cluster's brokers than TCP.
	DialTo func(ctx context.Context, addr string) (net.Conn, error)
	// Own says whether a connection has led back to kcoord itself. nil: none has.
	Own func(net.Conn) bool
	// Seen is told the ids of a cluster's brokers at each full look.
	Seen func(ids []int32)
	Log  zerolog.Logger
	// Advertised is the sidecar's own host:port, by which it finds the broker
	// behind it among several of a cluster.
	Advertised string
	// NodeID is the id of the broker behind, where neither Advertised nor its
	// being alone tells it. nil: found out.
	NodeID *int32
	// Refresh is the time between two full looks at the topics: 1 s.
	Refresh time.Duration
	// MaxAge is how long the view of the topics serves while the broker cannot be
	// reached: 5 min.
	MaxAge time.Duration
	// Timeout bounds a dial and a question: 3 s.
	Timeout time.Duration
	// Deleted is told the names of topics that were deleted, from a goroutine of
	// its own, and again after Refresh when it returns an error. No topic of these
	// names is shown before it has returned without one. With each goes the id of the topic that
	// has the name now; zero: there is none.
	Deleted func(topics map[string][16]byte) error
}

// Broker is the broker behind the sidecar.
type Broker struct {
	o      Options
	topics Topics
	cancel context.CancelFunc
	done   chan struct{}
	ready  chan struct{}

	asks     chan *ask
	ages     chan ages
	changed  chan struct{}
	versions atomic.Pointer[kmsg.ApiVersionsResponse]
	cluster  atomic.Pointer[Cluster]
	nodes    atomic.Pointer[nodes]
	current  atomic.Pointer[string] // of a cluster's brokers, where questions are answered

	// Of run alone.
	answered bool   // ready is closed
	looked   string // where the last full look was
	past     string // the address at which clients would go past kcoord, as was said last; empty: none
}

// Cluster is what Metadata tells about the broker and its cluster.
type Cluster struct {
	ID     string
	NodeID int32 // of the broker behind; -1: it cannot be told, or there are several
}

// Open starts looking after the broker; it need not be up.
func Open(o Options) *Broker {
	if o.Refresh <= 0 {
		o.Refresh = time.Second
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	if o.Deleted == nil {
		o.Deleted = func(map[string][16]byte) error { return nil }
	}
	if o.DialTo == nil {
		o.DialTo = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}
	}
	if o.Own != nil {
		o.DialTo = elsewhere(o.DialTo, o.Own)
	}
	if o.Dial == nil {
		addr := o.Addr
		o.Dial = func(ctx context.Context) (net.Conn, error) { return o.DialTo(ctx, addr) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Broker{o: o, cancel: cancel, done: make(chan struct{}), ready: make(chan struct{}), asks: make(chan *ask), ages: make(chan ages, 1), changed: make(chan struct{}, 1)}
	b.topics.init(b)
	b.nodes.Store(&nodes{})
	go b.run(ctx)
	return b
}

// ages are Options.Refresh and MaxAge.
type ages struct{ refresh, max time.Duration }

// Configure changes Options.Refresh and MaxAge, for the looks after the one under way. One
// goroutine calls it, and does not wait for a broker that hangs.
func (b *Broker) Configure(refresh, maxAge time.Duration) {
	select {
	case <-b.ages: // which nobody has seen
	default:
	}
	b.ages <- ages{refresh, maxAge}
}

// Close stops looking after the broker. It does not wait for a Deleted that is
// under way, which may be long; it is not called again.
func (b *Broker) Close() {
	b.cancel()
	<-b.done
}

// Ready is closed when the broker has answered for the first time.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Down says why the broker could not be looked at the last time; nil: it answered.
func (b *Broker) Down() error {
	b.topics.mu.RLock()
	defer b.topics.mu.RUnlock()
	return b.topics.down
}

// Dial opens a connection to pass requests on.
func (b *Broker) Dial(ctx context.Context) (net.Conn, error) {
	if b.gateway() {
		nc, _, err := b.dialAny(ctx)
		return nc, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	return b.o.Dial(ctx)
}

// Versions is the broker's latest answer to ApiVersions, nil when there was none
// yet. It is shared: don't change it.
func (b *Broker) Versions() *kmsg.ApiVersionsResponse { return b.versions.Load() }

// Cluster is the latest that is known of the cluster, even while the broker
// cannot be reached; false when nothing is known yet.
func (b *Broker) Cluster() (Cluster, bool) {
	if c := b.cluster.Load(); c != nil {
		return *c, true
	}
	return Cluster{}, false
}

// Topics is the view of the broker's topics.
func (b *Broker) Topics() *Topics { return &b.topics }

// run asks the broker everything there is to ask. Questions wait for each
// other: that is what makes a burst of them one request.
func (b *Broker) run(ctx context.Context) {
	defer close(b.done)
	l := b.link()
	defer l.close()
	tick := time.NewTicker(b.o.Refresh)
	defer tick.Stop()
	hurry := 0
	for full := true; ; {
		if full {
			_ = b.look(ctx, l) // has been logged, and the next one tries again
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			full = true
			if asks := b.waiting(); len(asks) > 0 { // a broker that hangs keeps them waiting for one look at most
				b.answer(ctx, l, asks)
			}
			if hurry--; hurry == 0 {
				tick.Reset(b.o.Refresh)
				b.topics.believe()
			}
		case <-b.changed:
			// A broker may answer before it shows the change itself.
			full, hurry = true, hurriedLooks
			tick.Reset(min(hurried, b.o.Refresh))
		case a := <-b.ages:
			full = false
			b.o.Refresh, b.o.MaxAge = a.refresh, a.max // which this goroutine alone reads
			tick.Reset(b.o.Refresh)
		case a := <-b.asks:
			full = false
			b.answer(ctx, l, append(b.waiting(), a))
		}
	}
}

// After a change, looks follow each other for a while as fast as this.
const (
	hurried      = 100 * time.Millisecond
	hurriedLooks = 10
)

// waiting takes the asks that wait already.
func (b *Broker) waiting() (asks []*ask) {
	for {
		select {
		case a := <-b.asks:
			asks = append(asks, a)
		default:
			return asks
		}
	}
}

// ErrOtherCluster says that a broker answers of topics that are not those of before.
var ErrOtherCluster = errors.New("upstream: the broker belongs to another cluster than before, so its topics are not believed: restart kcoord if that is right")

// look refreshes the whole view.
func (b *Broker) look(ctx context.Context, l *link) error {
	changes := b.topics.now()
	resp, err := l.metadata(ctx, nil, nil)
	switch {
	case err != nil:
	case len(resp.Brokers) == 0:
		err = errors.New("upstream: an answer to Metadata without brokers")
	case b.topics.otherCluster(resp):
		err = ErrOtherCluster
	default:
		if err = b.doubt(ctx, resp); err != nil {
			l.close() // and ask another one
			b.settle("")
		}
	}
	if err != nil {
		if b.topics.failed(time.Now(), err) && ctx.Err() == nil {
			b.o.Log.Warn().Err(err).Str("broker", b.name()).Msg("the broker behind cannot be asked for its topics; trying again")
		}
		return err
	}
	b.learn(resp)
	if at := b.current.Load(); at != nil {
		b.looked = *at
	}
	back := b.answered && b.Down() != nil
	replaced, suspects := b.topics.full(resp, time.Now(), changes)
	if back {
		b.o.Log.Info().Str("broker", b.name()).Msg("the broker behind answers again")
	}
	b.bury(ctx, replaced, "topics were deleted and created again")
	if len(suspects) > 0 {
		b.confirm(ctx, l, suspects)
	}
	if !b.answered {
		b.answered = true
		close(b.ready)
	}
	return nil
}

// confirm asks for topics that full answers left out, by name.
func (b *Broker) confirm(ctx context.Context, l *link, suspects []string) {
	if b.gateway() {
		everywhere := b.absentEverywhere(ctx, suspects)
		if len(everywhere) < len(suspects) { // this one may be behind: look at another next
			l.close()
			b.settle("")
		}
		if suspects = everywhere; len(suspects) == 0 {
			return
		}
	}
	resp, err := l.metadata(ctx, suspects, nil)
	if err != nil {
		return // they stay suspects, and the next full look comes here again
	}
	replaced, gone := b.topics.confirmed(resp, suspects)
	b.bury(ctx, replaced, "topics were deleted and created again")
	b.bury(ctx, gone, "topics were deleted")
}

// bury tells of deleted topics until it was heard, or the Broker is closed.
func (b *Broker) bury(ctx context.Context, topics map[string][16]byte, what string) {
	if len(topics) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(topics))
	b.o.Log.Info().Strs("topics", names).Msg(what)
	again := b.o.Refresh
	go func() {
		for {
			err := b.o.Deleted(topics)
			if err == nil {
				b.topics.buried(names)
				return
			}
			b.o.Log.Warn().Err(err).Strs("topics", names).Msg("the offsets of deleted topics could not be deleted; trying again")
			select {
			case <-ctx.Done():
				return
			case <-time.After(again):
			}
		}
	}()
}

// learn keeps what an answer says about the cluster.
func (b *Broker) learn(resp *kmsg.MetadataResponse) {
	c := &Cluster{NodeID: -1}
	if resp.ClusterID != nil {
		c.ID = *resp.ClusterID
	}
	if b.gateway() { // every broker is behind, each at a port of its own
		b.cluster.Store(c)
		b.meet(resp.Brokers)
		return
	}
	switch {
	case b.o.NodeID != nil:
		c.NodeID = *b.o.NodeID
	case len(resp.Brokers) == 1:
		c.NodeID = resp.Brokers[0].NodeID
	default:
		for _, br := range resp.Brokers {
			if hostPort(br.Host, br.Port) == b.o.Advertised {
				c.NodeID = br.NodeID
			}
		}
	}
	b.cluster.Store(c)
	b.advise(resp, c)
}

// nobody takes an address's place where the broker behind cannot be told.
const nobody = "?"

// advise says, when that changes, where clients would go past the sidecar: those that know the
// coordinator by its node id take that node's address from Metadata.
func (b *Broker) advise(resp *kmsg.MetadataResponse, c *Cluster) {
	past := ""
	if c.NodeID < 0 {
		past = nobody
	}
	for _, br := range resp.Brokers {
		if at := hostPort(br.Host, br.Port); br.NodeID == c.NodeID && b.o.Advertised != "" && at != b.o.Advertised {
			past = at
		}
	}
	if past == b.past {
		return
	}
	b.past = past
	switch past {
	case "":
		b.o.Log.Info().Str("kcoord", b.o.Advertised).Int32("node", c.NodeID).Msg("the broker behind advertises kcoord's address now")
	case nobody:
		b.o.Log.Warn().Str("kcoord", b.o.Advertised).Int("brokers", len(resp.Brokers)).
			Msg("which broker is behind cannot be told, so that no coordinator can be found: set the advertised.listeners of one to kcoord's address, or say its node id")
	default:
		b.o.Log.Warn().Str("broker", past).Str("kcoord", b.o.Advertised).Int32("node", c.NodeID).
			Msg("the broker behind advertises another address than kcoord's, so that clients may go past kcoord: set its advertised.listeners to kcoord's address")
	}
}

func (b *Broker) name() string {
	if at := b.current.Load(); at != nil {
		return *at
	}
	if b.gateway() {
		return strings.Join(b.o.Seeds, ",")
	}
	if b.o.Addr == "" {
		return "embedded"
	}
	return b.o.Addr
}
