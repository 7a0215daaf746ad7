package group

import "time"

// rebalanceOrComplete begins a rebalance, or ends the join phase of the one that
// is being prepared if nobody is missing.
func (m *Machine) rebalanceOrComplete(now time.Time, e *entry, out *output) {
	if e.live.canRebalance() {
		m.rebalance(now, e, out)
		return
	}
	m.completeIfJoined(now, e, out)
}

// completeIfJoined ends the join phase if nobody is missing. A group that was
// empty takes its initial delay all the same.
func (m *Machine) completeIfJoined(now time.Time, e *entry, out *output) {
	if g := e.live; g.state == statePreparing && g.previous != stateEmpty && g.allJoined() {
		m.completeJoin(now, e, out)
	}
}

// rebalance begins the join phase.
func (m *Machine) rebalance(now time.Time, e *entry, out *output) {
	g := e.live
	if g.state == stateCompleting {
		for _, mb := range g.order {
			mb.assignment = nil
			m.answerSyncAndBeat(now, e, mb, syncError(rebalanceInProgress), out)
		}
	}
	m.forgetSyncs(g)
	first := g.state == stateEmpty
	g.to(statePreparing, now)
	switch {
	case first:
		g.delay, g.more = m.cfg.InitialRebalanceDelay, false
		g.left = max(g.rebalanceTimeout()-g.delay, 0)
		g.join.kind = timerInitialDelay
		m.timers.arm(&g.join, now.Add(g.delay))
	case g.allJoined():
		m.completeJoin(now, e, out)
	default:
		g.join.kind = timerJoinPhase
		m.timers.arm(&g.join, now.Add(g.rebalanceTimeout()))
	}
}

// initialDelayOver waits on if more members came, up to the rebalance timeout.
func (m *Machine) initialDelayOver(now time.Time, e *entry, out *output) {
	g := e.live
	if !g.more || g.left == 0 {
		m.completeJoin(now, e, out)
		return
	}
	g.more = false
	g.delay, g.left = min(m.cfg.InitialRebalanceDelay, g.left), max(g.left-g.delay, 0)
	m.timers.arm(&g.join, now.Add(g.delay))
}

// sessionOver gives up a member that was not heard of, or a pending one.
func (m *Machine) sessionOver(now time.Time, e *entry, mb *member, out *output) {
	g := e.live
	if g.pending[mb.id] == mb {
		m.unpend(g, mb.id)
		if g.idle() {
			m.checkSoon(e)
		}
		if g.state == statePreparing && g.allJoined() {
			m.completeJoin(now, e, out)
		}
		return
	}
	// Who waits for an answer need not send heartbeats, but for a new member, which
	// may have gone. The session begins anew with the answer.
	if !mb.fresh && (len(mb.joins) > 0 || len(mb.syncs) > 0) {
		return
	}
	m.counts.Evicted++
	m.answerJoin(g, mb, joinError(unknownMemberID, ""), out)
	m.drop(g, mb)
	switch g.state {
	case stateStable, stateCompleting:
		m.rebalance(now, e, out)
	case statePreparing:
		if g.allJoined() {
			m.completeJoin(now, e, out)
		}
	}
}

// drop takes a member out and stops its session.
func (m *Machine) drop(g *liveGroup, mb *member) {
	m.timers.Remove(&mb.session)
	g.remove(mb)
}

// pend remembers whom an id was given to, until it joins with it or its session is over.
func (m *Machine) pend(now time.Time, e *entry, mb *member, session time.Duration) {
	if e.live.pending == nil {
		e.live.pending = map[string]*member{}
	}
	e.live.pending[mb.id] = mb
	m.armSession(e, mb, now.Add(session))
}

// unpend forgets a pending member.
func (m *Machine) unpend(g *liveGroup, id string) {
	if mb := g.pending[id]; mb != nil {
		m.timers.Remove(&mb.session)
		delete(g.pending, id)
	}
}

// beat begins a member's session anew.
func (m *Machine) beat(now time.Time, e *entry, mb *member) {
	m.armSession(e, mb, now.Add(mb.sessionTimeout))
}

func (m *Machine) armSession(e *entry, mb *member, at time.Time) {
	mb.session.entry, mb.session.member = e, mb
	m.timers.arm(&mb.session, at)
}

// bury ends a live group: its clocks stop.
func (m *Machine) bury(e *entry) {
	g := e.live
	for _, mb := range g.order {
		m.timers.Remove(&mb.session)
	}
	for _, mb := range g.pending {
		m.timers.Remove(&mb.session)
	}
	m.timers.Remove(&g.join)
	m.timers.Remove(&g.sync)
	g.to(stateDead, m.now)
	e.live = nil
}
