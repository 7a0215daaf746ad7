package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// leave takes members out, one answer each (KIP-345).
func (m *Machine) leave(now time.Time, e *entry, r Leave, out *output) *kmsg.LeaveGroupResponse {
	resp := kmsg.NewPtrLeaveGroupResponse()
	if r.Group == "" || tooLong(r.Group) {
		resp.ErrorCode = invalidGroupID
		return resp
	}
	g, left := e.live, false
	resp.Members = make([]kmsg.LeaveGroupResponseMember, len(r.Members))
	for i, who := range r.Members {
		code := unknownMemberID
		if g != nil {
			code = m.leaveOne(g, who.MemberID, who.InstanceID, out)
		}
		left = left || code == none
		resp.Members[i] = kmsg.LeaveGroupResponseMember{MemberID: who.MemberID, InstanceID: who.InstanceID, ErrorCode: code}
	}
	if !left {
		return resp
	}
	switch g.state {
	case stateStable, stateCompleting:
		m.rebalance(now, e, out)
	case statePreparing:
		m.completeIfJoined(now, e, out)
	case stateEmpty: // a pending one left
		m.checkSoon(e)
	}
	return resp
}

// leaveOne takes one member out. An operator names a static member by its
// instance id alone.
func (m *Machine) leaveOne(g *liveGroup, id string, instance *string, out *output) int16 {
	var mb *member
	switch {
	case id == "" && instance != nil:
		mb = g.statics[*instance]
	case id != "" && g.pending[id] != nil:
		m.unpend(g, id)
		return none
	case id != "":
		var code int16
		if mb, code = g.check(id, instance); code != none {
			return code
		}
	}
	if mb == nil {
		return unknownMemberID
	}
	// If it is still there after all, it joins again as a new one.
	m.answerJoin(g, mb, joinError(unknownMemberID, ""), out)
	m.answerSync(mb, syncError(unknownMemberID), out)
	m.drop(g, mb)
	return none
}
