package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeat refreshes a member's session and tells it when to join again.
func (m *Machine) heartbeat(now time.Time, e *entry, r Heartbeat) *kmsg.HeartbeatResponse {
	g := e.live
	switch {
	case r.Group == "" || tooLong(r.Group):
		return heartbeatReply(invalidGroupID)
	case g == nil:
		return heartbeatReply(unknownMemberID)
	}
	mb, code := g.check(r.MemberID, r.InstanceID)
	switch {
	case code != none:
		return heartbeatReply(code)
	case r.Generation != g.generation:
		return heartbeatReply(illegalGeneration)
	}
	m.beat(now, e, mb)
	if g.state == statePreparing {
		return heartbeatReply(rebalanceInProgress)
	}
	return heartbeatReply(none)
}

func heartbeatReply(code int16) *kmsg.HeartbeatResponse {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = code
	return resp
}
