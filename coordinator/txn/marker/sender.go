package marker

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// Brokers is the cluster, as far as markers need it.
type Brokers interface {
	// Route says who leads topics, in an answer that the cluster gave after it was asked.
	// Topics that it says nothing about are left out.
	Route(ctx context.Context, topics []string) (map[string]Route, error)
	// Write sends markers to a broker.
	Write(ctx context.Context, node int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error)
}

// Route is what the cluster says of a topic.
type Route struct {
	Absent  bool            // there is no topic of that name
	Leaders map[int32]int32 // by partition: the leader's id, -1 while there is none
}

// Marker ends the transaction of a producer in one of our shards of groups.
type Marker struct {
	Producer           txn.Producer
	Commit             bool
	CoordinatorEpoch   int32
	TransactionVersion int16
}

// Options say what a Sender works with.
type Options struct {
	Brokers Brokers // nil: only our own shards can be written to
	// Group writes a marker to a partition of __consumer_offsets. reply is called once, maybe
	// before it returns. It must not block.
	Group func(partition int32, m Marker, reply func(error))
	// Groups is how many such partitions there are.
	Groups int
	// Report tells the transaction's shard. reply is called once. It must not block.
	Report func(req txn.Request, reply func(error))
	// CoordinatorEpoch goes with every marker. It must be higher than that of any Sender
	// before: partitions refuse markers of a lower one.
	CoordinatorEpoch int32
	Log              zerolog.Logger
}

// Sender writes markers until it is closed.
type Sender struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{}
	done   sync.WaitGroup // of run and of what it started

	mu     sync.Mutex
	counts Counters
	closed bool
	jobs   map[string]*job
	nodes  map[int32]*node
	routes map[string]known
}

// job is one decided transaction.
type job struct {
	txn.SendMarkers
	began time.Time
	parts []part
	open  int // parts that are neither written nor gone

	partly    time.Time // when to report what is written, though not all is
	reporting bool
	reportAt  time.Time // when the last report went unheard: when to report again
}

// part is one partition.
type part struct {
	topic string
	index int32
	state partState
	due   time.Time     // when to try again
	wait  time.Duration // the last wait before that
	fresh time.Time     // who leads must have been asked for since then
	looks int           // answers in a row that said that it is no more
	told  bool          // that it is written, or gone
	said  bool          // a log line has told why it is not written
}

type partState uint8

const (
	waiting partState = iota
	sent
	written
	gone
)

// New returns a Sender that is at work.
func New(o Options) *Sender {
	s := &Sender{o: o, wake: make(chan struct{}, 1), jobs: map[string]*job{}, nodes: map[int32]*node{}, routes: map[string]known{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.done.Go(s.run)
	return s
}

// Close gives up what is not written yet: the next Sender is told of it.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.done.Wait()
}

// Send writes the markers of a decided transaction. Being told of one that is under way
// changes nothing.
func (s *Sender) Send(e txn.SendMarkers) {
	s.mu.Lock()
	if old := s.jobs[e.TransactionalID]; s.closed || old != nil && old.Attempt.Is(e.Attempt) {
		s.mu.Unlock()
		return
	}
	j := s.newJob(e)
	s.jobs[e.TransactionalID] = j
	ours, others := j.toSend(s.o.Groups)
	s.mu.Unlock()
	s.toGroups(j, ours)
	if others {
		s.nudge()
	}
}

func (s *Sender) newJob(e txn.SendMarkers) *job {
	now := time.Now()
	j := &job{SendMarkers: e, began: now, partly: now.Add(partlyAfter)}
	for _, t := range e.Topics {
		for _, p := range t.Partitions {
			j.parts = append(j.parts, part{topic: t.Name, index: p})
		}
	}
	j.open = len(j.parts)
	return j
}

// toSend takes the parts that are our own shards, which can be written to at once, and says
// whether there are others. REQUIRES mu.
func (j *job) toSend(groups int) (ours []int, others bool) {
	for i := range j.parts {
		p := &j.parts[i]
		switch {
		case p.topic != txn.OffsetsTopic || p.state != waiting:
			others = others || p.state == waiting
		case int(p.index) < groups:
			p.state = sent
			ours = append(ours, i)
		default: // of a log that was written with more of them
			j.gone(p)
			others = true
		}
	}
	return ours, others || j.open == 0
}

// toGroups writes to our own shards. What fails is tried again by run.
func (s *Sender) toGroups(j *job, ours []int) {
	m := Marker{j.Attempt.Producer, j.Commit, s.o.CoordinatorEpoch, j.TransactionVersion}
	for _, i := range ours {
		s.o.Group(j.parts[i].index, m, func(err error) {
			s.mu.Lock()
			if err != nil {
				j.parts[i].later(time.Now())
				s.counts.Retried++
				s.mu.Unlock()
				s.nudge()
				return
			}
			j.written(&j.parts[i])
			s.counts.Written++
			reports := s.due(j, time.Now())
			s.mu.Unlock()
			s.report(j, reports)
		})
	}
}

// REQUIRES of what follows: mu.

func (j *job) written(p *part) {
	p.state = written
	j.open--
}

func (j *job) gone(p *part) {
	p.state = gone
	j.open--
}

// later has a part tried again, after a while that grows.
func (p *part) later(now time.Time) {
	p.state = waiting
	p.wait = min(max(2*p.wait, firstWait), lastWait)
	p.due, p.fresh = now.Add(p.wait), now
}

const (
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
	// rarely is how often is tried what will hardly go well: the broker refuses it.
	rarely = 10 * time.Second
	// partlyAfter is when what is written is reported, though not all is.
	partlyAfter = time.Second
	// routeAge is how old an answer about who leads may be.
	routeAge = 30 * time.Second
	// writeTimeout bounds a request to a broker.
	writeTimeout = 30 * time.Second
)

// Counters counts since the Sender was made.
type Counters struct {
	Written int64 // markers that are in their partitions
	Retried int64 // those that were not taken, and are sent again
}

// Counters returns the counters as they are now.
func (s *Sender) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Waiting is how many transactions wait for markers, and since when the oldest does.
func (s *Sender) Waiting() (n int, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if since.IsZero() || j.began.Before(since) {
			since = j.began
		}
	}
	return len(s.jobs), since
}

func (s *Sender) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
