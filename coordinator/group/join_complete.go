package group

import "time"

// leastWait is how long a join phase that nobody has joined is tried again after
// at least: rebalance timeouts may be 0.
const leastWait = time.Second

// completeJoin ends the join phase: who has not joined is out, unless static,
// and the others learn of the next generation.
func (m *Machine) completeJoin(now time.Time, e *entry, out *output) {
	g := e.live
	m.timers.Remove(&g.join)
	for i := len(g.order) - 1; i >= 0; i-- {
		if mb := g.order[i]; len(mb.joins) == 0 && mb.instance == nil {
			m.counts.Evicted++
			m.drop(g, mb)
		}
	}
	switch {
	case len(g.order) == 0:
		m.completeEmpty(now, e, out)
	case !g.electLeader():
		// All are static and silent: wait until they come or their sessions are over.
		g.join.kind = timerJoinPhase
		m.timers.arm(&g.join, now.Add(max(g.rebalanceTimeout(), leastWait)))
	default:
		m.beginGeneration(now, e, out)
	}
}

// electLeader keeps the leader if it has joined, else takes one that has.
func (g *liveGroup) electLeader() bool {
	if g.leader != nil && len(g.leader.joins) > 0 {
		return true
	}
	for _, mb := range g.order {
		if len(mb.joins) > 0 {
			g.leader = mb
			return true
		}
	}
	return false
}

// completeEmpty ends a join phase without members. Generations go on.
func (m *Machine) completeEmpty(now time.Time, e *entry, out *output) {
	g := e.live
	g.generation++
	g.protocol = nil
	g.learnTopics()
	g.to(stateEmpty, now)
	out.Record(g.record())
	m.checkSoon(e)
}

// beginGeneration answers the joins and waits for the leader's assignment.
func (m *Machine) beginGeneration(now time.Time, e *entry, out *output) {
	g := e.live
	g.generation++
	chosen := g.vote()
	g.protocol = &chosen
	g.learnTopics()
	g.to(stateCompleting, now)
	for _, mb := range g.order {
		m.answerJoin(g, mb, g.joined(mb), out)
		m.beat(now, e, mb)
		mb.fresh, mb.unsynced = false, true
	}
	g.unsynced = len(g.order)
	m.timers.arm(&g.sync, now.Add(g.rebalanceTimeout()))
}
