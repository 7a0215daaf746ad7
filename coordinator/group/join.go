package group

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
)

// join decides on a JoinGroup. Whoever may join is parked until the join phase ends.
func (m *Machine) join(now time.Time, tok machine.Token, e *entry, r Join, out *output) {
	session := millis(r.SessionTimeoutMillis)
	switch {
	case r.Group == "" || tooLong(r.Group):
		out.Reply(tok, joinError(invalidGroupID, r.MemberID))
		return
	case session < m.cfg.MinSessionTimeout || session > m.cfg.MaxSessionTimeout:
		out.Reply(tok, joinError(invalidSessionTimeout, r.MemberID))
		return
	case e.kind != kindClassic:
		out.Reply(tok, joinError(inconsistentGroupProtocol, ""))
		return
	case e.live == nil && r.MemberID != "":
		out.Reply(tok, joinError(unknownMemberID, r.MemberID))
		return
	}
	created := e.live == nil
	if created {
		e.live = newLiveGroup(e, now)
		m.checkSoon(e)
	}
	records := len(out.Records)
	switch {
	case !m.accepts(e.live, r.MemberID):
		m.dismiss(e.live, r.MemberID)
		out.Reply(tok, joinError(groupMaxSizeReached, ""))
	case r.MemberID == "":
		m.joinNew(now, tok, e, r, out)
	default:
		m.joinKnown(now, tok, e, r, out)
	}
	if created && len(out.Records) == records {
		// A group exists once it is written, whatever became of its first request. What
		// is soft (its state, its first member's protocol type) is not written yet.
		out.Record(state.Record{Kind: state.KindGroup, Group: e.id, Classic: &state.Classic{Since: e.live.since}})
	}
}

// accepts says whether group.max.size leaves room. While a rebalance is
// prepared, those that have joined count: so the last to join again are turned
// away if the limit was lowered.
func (m *Machine) accepts(g *liveGroup, memberID string) bool {
	mb := g.members[memberID]
	switch g.state {
	case statePreparing:
		return mb != nil && len(mb.joins) > 0 || g.joining < m.cfg.MaxSize
	case stateCompleting, stateStable:
		return mb != nil || len(g.order) < m.cfg.MaxSize
	}
	return true
}

// dismiss takes out who was turned away, member or pending.
func (m *Machine) dismiss(g *liveGroup, memberID string) {
	if mb := g.members[memberID]; mb != nil {
		m.drop(g, mb)
	}
	m.unpend(g, memberID)
}

// joinNew decides on a join without a member id.
func (m *Machine) joinNew(now time.Time, tok machine.Token, e *entry, r Join, out *output) {
	g, ps := e.live, protocolsOf(r)
	switch {
	case !g.supports(r.ProtocolType, ps):
		out.Reply(tok, joinError(inconsistentGroupProtocol, ""))
	case !writable(r):
		out.Reply(tok, joinError(unknownServerError, ""))
	case r.InstanceID != nil && g.statics[*r.InstanceID] != nil:
		m.replace(now, tok, e, g.statics[*r.InstanceID], m.memberID(*r.InstanceID), ps, r, out)
	case r.InstanceID != nil:
		m.admit(now, tok, e, m.memberID(*r.InstanceID), ps, r, out)
	case r.MemberIDRequired: // KIP-394
		mb := &member{id: m.memberID(r.Client.ID)}
		m.pend(now, e, mb, millis(r.SessionTimeoutMillis))
		out.Reply(tok, joinError(memberIDRequired, mb.id))
	default:
		m.admit(now, tok, e, m.memberID(r.Client.ID), ps, r, out)
	}
}

// joinKnown decides on a join with a member id.
func (m *Machine) joinKnown(now time.Time, tok machine.Token, e *entry, r Join, out *output) {
	g, ps := e.live, protocolsOf(r)
	if !g.supports(r.ProtocolType, ps) {
		out.Reply(tok, joinError(inconsistentGroupProtocol, r.MemberID))
		return
	}
	if g.pending[r.MemberID] != nil {
		if r.InstanceID != nil || !writable(r) { // the first: Kafka fails, too, static members are never pending
			out.Reply(tok, joinError(unknownServerError, ""))
			return
		}
		m.unpend(g, r.MemberID)
		m.admit(now, tok, e, r.MemberID, ps, r, out)
		return
	}
	mb, code := g.check(r.MemberID, r.InstanceID)
	switch {
	case code != none:
		out.Reply(tok, joinError(code, r.MemberID))
	case !writable(r):
		out.Reply(tok, joinError(unknownServerError, ""))
	case g.state == stateCompleting && sameProtocols(mb.protocols, ps):
		// It did not get the answer: the generation goes on.
		out.Reply(tok, g.joined(mb))
	case g.state == stateStable && g.leader != mb && sameProtocols(mb.protocols, ps):
		// Nothing changed. A leader's join begins a rebalance, since it may
		// know of changes that show in nobody's metadata.
		out.Reply(tok, g.joined(mb))
	case g.state == stateEmpty:
		out.Reply(tok, joinError(unknownMemberID, r.MemberID))
	default:
		g.update(tok, mb, ps, r)
		m.rebalanceOrComplete(now, e, out)
	}
}

// admit takes a new member in.
func (m *Machine) admit(now time.Time, tok machine.Token, e *entry, id string, ps []protocol, r Join, out *output) {
	g := e.live
	mb := &member{
		id: id, instance: r.InstanceID, clientID: r.Client.ID, clientHost: r.Client.Host,
		rebalanceTimeout: millis(r.RebalanceTimeoutMillis), sessionTimeout: millis(r.SessionTimeoutMillis),
		protocols: ps, fresh: true, joins: []machine.Token{tok},
	}
	if g.state == statePreparing && g.previous == stateEmpty {
		g.more = true
	}
	if len(g.order) == 0 {
		g.protocolType = r.ProtocolType
	}
	g.add(mb)
	// A member that has no answer yet cannot send heartbeats, and a client that has gone is
	// not seen: it is given up after a time if it does not ask again.
	m.armSession(e, mb, now.Add(NewMemberJoinTimeout))
	m.rebalanceOrComplete(now, e, out)
}

// replace gives a static member that returns without its member id a new one;
// the one before is fenced (KIP-345).
func (m *Machine) replace(now time.Time, tok machine.Token, e *entry, old *member, id string, ps []protocol, r Join, out *output) {
	g := e.live
	led := g.leader == old
	leader := g.leaderID()
	m.answerJoin(g, old, joinError(fencedInstanceID, old.id), out)
	m.answerSync(old, syncError(fencedInstanceID), out)
	mb := g.rename(old, id)
	m.timers.Remove(&old.session)
	m.beat(now, e, mb) // by the timeout that it had: the new one counts from the next heartbeat on
	g.update(tok, mb, ps, r)
	switch {
	case g.state == stateCompleting:
		// The leader may have assigned to the old id already.
		m.rebalance(now, e, out)
	case g.state == stateStable && g.protocol != nil && g.vote() == *g.protocol:
		g.learnTopics()
		m.checkSoon(e)
		out.Record(g.record())
		resp := g.joined(mb)
		if r.SkipsAssignment {
			resp.SkipAssignment = led
		} else { // it would assign as the leader: it is told of the one before (KIP-814)
			resp.LeaderID, resp.Members = leader, nil
		}
		m.answerJoin(g, mb, resp, out)
	case g.state == stateStable:
		m.rebalance(now, e, out)
	default:
		m.completeIfJoined(now, e, out)
	}
}

// rename puts a member with a new id into the place of a static one. That it still has
// to sync goes over to it, which in Kafka is lost.
func (g *liveGroup) rename(old *member, id string) *member {
	mb := &member{
		id: id, instance: old.instance, clientID: old.clientID, clientHost: old.clientHost,
		rebalanceTimeout: old.rebalanceTimeout, sessionTimeout: old.sessionTimeout,
		protocols: old.protocols, assignment: old.assignment, unsynced: old.unsynced,
	}
	led := g.leader == old
	delete(g.members, old.id)
	if i, had := g.find(old.id); had {
		g.order = slices.Delete(g.order, i, i+1)
	}
	g.put(mb)
	if led {
		g.leader = mb
	}
	return mb
}

// update takes over what a member says in its join, which is parked.
func (g *liveGroup) update(tok machine.Token, mb *member, ps []protocol, r Join) {
	g.count(mb, -1)
	mb.protocols = ps
	g.count(mb, 1)
	mb.rebalanceTimeout, mb.sessionTimeout = millis(r.RebalanceTimeoutMillis), millis(r.SessionTimeoutMillis)
	if len(mb.joins) == 0 {
		g.joining++
	}
	mb.joins = append(mb.joins, tok)
}

// joined tells a member of the generation.
func (g *liveGroup) joined(mb *member) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Generation, resp.Protocol, resp.MemberID = g.generation, g.protocol, mb.id
	protocolType := g.protocolType
	resp.ProtocolType = &protocolType
	resp.LeaderID = g.leaderID()
	if g.leader == mb {
		resp.Members = make([]kmsg.JoinGroupResponseMember, len(g.order))
		for i, o := range g.order {
			resp.Members[i] = kmsg.JoinGroupResponseMember{MemberID: o.id, InstanceID: o.instance, ProtocolMetadata: o.metadata(g.protocol)}
		}
	}
	return resp
}

func joinError(code int16, memberID string) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.MemberID, resp.Generation = code, memberID, -1
	return resp
}

// answerJoin answers a member's parked joins, if there are any.
func (m *Machine) answerJoin(g *liveGroup, mb *member, resp *kmsg.JoinGroupResponse, out *output) {
	if len(mb.joins) == 0 {
		return
	}
	g.joining--
	for i, tok := range mb.joins {
		if i > 0 { // whoever gets an answer owns it
			again := *resp
			resp = &again
		}
		out.Reply(tok, resp)
	}
	mb.joins = nil
}

// memberID makes a member's id from the client's or the instance's, as Kafka does.
func (m *Machine) memberID(prefix string) string {
	var u [16]byte
	if _, err := io.ReadFull(m.rand, u[:]); err != nil {
		panic(fmt.Sprintf("no randomness for member ids: %v", err))
	}
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	h := hex.EncodeToString(u[:])
	return prefix + "-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// protocolsOf copies the protocols of a join; of one named twice the first counts.
func protocolsOf(r Join) []protocol {
	ps := make([]protocol, 0, len(r.Protocols))
	for _, p := range r.Protocols {
		if !slices.ContainsFunc(ps, func(q protocol) bool { return q.name == p.Name }) {
			ps = append(ps, protocol{p.Name, bytes.Clone(p.Metadata), string(p.UnknownTags.AppendEach(nil))})
		}
	}
	return ps
}

func sameProtocols(a, b []protocol) bool {
	return slices.EqualFunc(a, b, func(x, y protocol) bool {
		return x.name == y.name && bytes.Equal(x.metadata, y.metadata) && x.tags == y.tags
	})
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
