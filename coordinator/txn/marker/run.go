package marker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// known is who leads a topic's partitions, and when that was asked for.
type known struct {
	Route
	asked time.Time
}

// node is a broker that markers were sent to.
type node struct {
	busy bool // a request is in flight
}

// run looks at what is due, and then waits until something is.
func (s *Sender) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(s.step())
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// step does what is due and returns how long there is nothing more to do.
func (s *Sender) step() time.Duration {
	now := time.Now()
	s.retryGroups(now)
	s.route(now)
	s.dispatch(now)
	s.reportAll(now)
	return s.rest(now)
}

// retryGroups writes to our own shards what they did not take before.
func (s *Sender) retryGroups(now time.Time) {
	type retry struct {
		j    *job
		ours []int
	}
	var all []retry
	s.mu.Lock()
	for _, j := range s.jobs {
		r := retry{j: j}
		for i := range j.parts {
			if p := &j.parts[i]; p.topic == txn.OffsetsTopic && p.ready(now) {
				p.state = sent
				r.ours = append(r.ours, i)
			}
		}
		if r.ours != nil {
			all = append(all, r)
		}
	}
	s.mu.Unlock()
	for _, r := range all {
		s.toGroups(r.j, r.ours)
	}
}

func (p *part) ready(now time.Time) bool { return p.state == waiting && !now.Before(p.due) }

// leader is who leads a part, if an answer says so that is new enough for it. What an
// answer said that names no leader counts once: the topic may have been made since.
func (s *Sender) leader(p *part, now time.Time) (int32, bool) {
	k, told := s.routes[p.topic]
	leader, led := k.Leaders[p.index]
	return leader, told && led && leader >= 0 && !k.asked.Before(p.fresh) && now.Sub(k.asked) < routeAge
}

// route asks who leads the topics of which that is not known well enough.
func (s *Sender) route(now time.Time) {
	need := map[string]bool{}
	s.mu.Lock()
	for _, j := range s.jobs {
		for i := range j.parts {
			p := &j.parts[i]
			if p.topic != txn.OffsetsTopic && p.ready(now) {
				if _, led := s.leader(p, now); !led {
					need[p.topic] = true
				}
			}
		}
	}
	s.mu.Unlock()
	if len(need) == 0 || s.o.Brokers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, writeTimeout)
	defer cancel()
	routes, err := s.o.Brokers.Route(ctx, slices.Sorted(maps.Keys(need)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		routes = nil
	}
	for topic := range need {
		delete(s.routes, topic)
		if r, told := routes[topic]; told {
			s.routes[topic] = known{r, now}
		}
	}
	s.judge(need, now)
}

// judge tells the parts whose leaders were asked for what came of it: those that cannot be
// sent wait, and those that are no more are given up.
func (s *Sender) judge(asked map[string]bool, now time.Time) {
	for _, j := range s.jobs {
		for i := range j.parts {
			p := &j.parts[i]
			if !asked[p.topic] || !p.ready(now) {
				continue
			}
			k, told := s.routes[p.topic]
			leader, there := k.Leaders[p.index]
			switch {
			case told && (k.Absent || !there && len(k.Leaders) > 0):
				s.absent(j, p, now)
			case !told || leader < 0:
				p.looks = 0
				p.later(now)
			default:
				p.looks = 0
			}
		}
	}
}

const (
	goneLooks = 4
	goneApart = 400 * time.Millisecond
)

// absent counts an answer that says that a partition is no more.
func (s *Sender) absent(j *job, p *part, now time.Time) {
	if p.looks++; p.looks < goneLooks {
		p.state, p.due, p.fresh = waiting, now.Add(goneApart), now.Add(1)
		return
	}
	s.o.Log.Info().Str("transactionalId", j.TransactionalID).Str("topic", p.topic).Int32("partition", p.index).
		Msg("a partition is gone before its transaction marker was written")
	j.gone(p)
}

// dispatch sends what is due to brokers that have nothing in flight.
func (s *Sender) dispatch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batches := map[int32]*batch{}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		for i := range j.parts {
			p := &j.parts[i]
			leader, led := s.leader(p, now)
			if p.topic == txn.OffsetsTopic || !p.ready(now) || !led {
				continue
			}
			n := s.nodes[leader]
			if n == nil {
				n = &node{}
				s.nodes[leader] = n
			}
			if n.busy {
				continue
			}
			b := batches[leader]
			if b == nil {
				b = &batch{node: leader}
				batches[leader] = b
			}
			p.state = sent
			b.add(j, i)
		}
	}
	for leader, b := range batches {
		s.nodes[leader].busy = true
		s.done.Go(func() { s.write(b) })
	}
}

// batch is one request.
type batch struct {
	node int32
	jobs []batched
}

type batched struct {
	j     *job
	parts []int
}

func (b *batch) add(j *job, part int) {
	if n := len(b.jobs); n == 0 || b.jobs[n-1].j != j {
		b.jobs = append(b.jobs, batched{j: j})
	}
	last := &b.jobs[len(b.jobs)-1]
	last.parts = append(last.parts, part)
}

func (b *batch) request(coordinatorEpoch int32) *kmsg.WriteTxnMarkersRequest {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for _, one := range b.jobs {
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch = int64(one.j.Attempt.Producer.ID), int16(one.j.Attempt.Producer.Epoch)
		m.Committed, m.CoordinatorEpoch, m.TransactionVersion = one.j.Commit, coordinatorEpoch, int8(one.j.TransactionVersion)
		for _, i := range one.parts {
			p := &one.j.parts[i]
			if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != p.topic {
				m.Topics = append(m.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: p.topic})
			}
			t := &m.Topics[len(m.Topics)-1]
			t.Partitions = append(t.Partitions, p.index)
		}
		req.Markers = append(req.Markers, m)
	}
	return req
}

// write sends a batch and takes in the answer.
func (s *Sender) write(b *batch) {
	ctx, cancel := context.WithTimeout(s.ctx, writeTimeout)
	defer cancel()
	resp, err := s.o.Brokers.Write(ctx, b.node, b.request(s.o.CoordinatorEpoch))
	now := time.Now()
	s.mu.Lock()
	s.nodes[b.node].busy = false
	s.take(b, resp, err, now)
	var reports [][]txn.Request
	for _, one := range b.jobs {
		reports = append(reports, s.due(one.j, now))
	}
	s.mu.Unlock()
	for i, one := range b.jobs {
		s.report(one.j, reports[i])
	}
	s.nudge()
}

// reportAll tells what was written of transactions that take long.
func (s *Sender) reportAll(now time.Time) {
	s.mu.Lock()
	reports := map[*job][]txn.Request{}
	for _, j := range s.jobs {
		if r := s.due(j, now); len(r) > 0 {
			reports[j] = r
		}
	}
	s.mu.Unlock()
	for j, r := range reports {
		s.report(j, r)
	}
}

// rest is how long there is nothing to do, unless something happens.
func (s *Sender) rest(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := now.Add(time.Hour)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, j := range s.jobs {
		if !j.reporting && j.open == 0 {
			sooner(j.reportAt)
		} else if !j.reporting {
			sooner(j.partly)
		}
		for i := range j.parts {
			if p := &j.parts[i]; p.state == waiting && p.due.After(now) {
				sooner(p.due) // what is due already waits for a broker that is busy, which then wakes us
			}
		}
	}
	return max(time.Until(next), time.Millisecond)
}
