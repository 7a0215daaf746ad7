package group

import (
	"bytes"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/machine"
)

// syncGroup decides on a SyncGroup. Followers are parked until the leader has
// assigned. Its assignment is written, then the group is stable.
func (m *Machine) syncGroup(now time.Time, tok machine.Token, e *entry, r Sync, out *output) {
	g := e.live
	var mb *member
	var code int16
	switch {
	case r.Group == "" || tooLong(r.Group):
		code = invalidGroupID
	case g == nil || g.state == stateEmpty:
		code = unknownMemberID
	default:
		mb, code = g.mayGetAssignment(r)
	}
	if code == none && g.state == statePreparing {
		code = rebalanceInProgress
	}
	if code != none {
		out.Reply(tok, syncError(code))
		return
	}
	m.synced(g, mb)
	if g.state == stateStable {
		out.Reply(tok, g.assigned(mb))
		return
	}
	mb.syncs = append(mb.syncs, tok)
	if g.leader == mb {
		m.assign(now, e, r.GroupAssignment, out)
	}
}

// mayGetAssignment checks who asks, and that it is about the generation that is.
func (g *liveGroup) mayGetAssignment(r Sync) (*member, int16) {
	mb, code := g.check(r.MemberID, r.InstanceID)
	switch {
	case code != none:
		return nil, code
	case r.Generation != g.generation:
		return nil, illegalGeneration
	case r.ProtocolType != nil && g.protocolType != "" && *r.ProtocolType != g.protocolType:
		return nil, inconsistentGroupProtocol // KIP-559
	case r.Protocol != nil && g.protocol != nil && *r.Protocol != *g.protocol:
		return nil, inconsistentGroupProtocol
	}
	return mb, none
}

// assign takes the leader's assignment; whom it left out gets an empty one.
func (m *Machine) assign(now time.Time, e *entry, as []kmsg.SyncGroupRequestGroupAssignment, out *output) {
	g := e.live
	for _, mb := range g.order {
		mb.assignment = nil
	}
	for _, a := range as {
		if mb := g.members[a.MemberID]; mb != nil {
			mb.assignment = bytes.Clone(a.MemberAssignment)
		}
	}
	out.Record(g.record()) // since is when the join phase ended, as in Kafka
	for _, mb := range g.order {
		m.answerSyncAndBeat(now, e, mb, g.assigned(mb), out)
	}
	g.to(stateStable, now)
	m.counts.Rebalances++
	m.checkSoon(e)
}

// syncOver throws out who has not fetched its assignment (KIP-559's pending syncs).
func (m *Machine) syncOver(now time.Time, e *entry, out *output) {
	g := e.live
	if g.unsynced == 0 || g.state != stateCompleting && g.state != stateStable {
		return
	}
	for i := len(g.order) - 1; i >= 0; i-- {
		if mb := g.order[i]; mb.unsynced {
			m.counts.Evicted++
			m.drop(g, mb)
		}
	}
	m.rebalance(now, e, out)
}

// synced notes that a member has asked for its assignment.
func (m *Machine) synced(g *liveGroup, mb *member) {
	if mb.unsynced {
		mb.unsynced = false
		g.unsynced--
	}
	if g.unsynced == 0 {
		m.timers.Remove(&g.sync)
	}
}

// forgetSyncs stops waiting for members to sync.
func (m *Machine) forgetSyncs(g *liveGroup) {
	for _, mb := range g.order {
		mb.unsynced = false
	}
	g.unsynced = 0
	m.timers.Remove(&g.sync)
}

// assigned tells a member its assignment.
func (g *liveGroup) assigned(mb *member) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	protocolType := g.protocolType
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &protocolType, g.protocol, mb.assignment
	return resp
}

func syncError(code int16) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode = code
	return resp
}

// answerSync answers a member's parked syncs, and says whether there were any.
func (m *Machine) answerSync(mb *member, resp *kmsg.SyncGroupResponse, out *output) bool {
	for i, tok := range mb.syncs {
		if i > 0 { // whoever gets an answer owns it
			again := *resp
			resp = &again
		}
		out.Reply(tok, resp)
	}
	parked := len(mb.syncs) > 0
	mb.syncs = nil
	return parked
}

// answerSyncAndBeat answers a member's parked syncs. Its session, which may have
// run out while it waited, begins anew.
func (m *Machine) answerSyncAndBeat(now time.Time, e *entry, mb *member, resp *kmsg.SyncGroupResponse, out *output) {
	if m.answerSync(mb, resp, out) {
		m.beat(now, e, mb)
	}
}
