package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// refusal answers a request to a group in quarantine: try again. Nothing can be
// said about the group, and least of all that it is empty.
func refusal(req Request) Response {
	const code = coordinatorLoadInProgress
	switch r := req.(type) {
	case Join:
		return joinError(code, r.MemberID)
	case Sync:
		return syncError(code)
	case Heartbeat:
		return heartbeatReply(code)
	case Leave:
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = code
		return resp
	case Commit:
		return commitReply(r, code)
	case TxnCommit:
		return TxnCommitted{txnCommitReply(r, code), LegacyNot}
	case Fetch:
		resp := kmsg.NewOffsetFetchResponseGroup()
		resp.Group, resp.ErrorCode = r.Group, code
		return &resp
	case DeleteOffsets:
		return deleteOffsetsError(code)
	case SetOffsets:
		return OffsetsSet{Code: code}
	case Describe:
		return describeError(r.Group, code, "The group has records that cannot be read.")
	case Observe:
		return Observed{describeError(r.Group, code, "The group has records that cannot be read."), -1}
	case Delete:
		return deleteReply(r.Group, code)
	}
	return ForgottenTopics{} // of a deleted topic: its offsets stay, as all of the group
}

// suspend ends what is live of a group: everything that is parked is told to try again.
func (m *Machine) suspend(e *entry, out *output) {
	if e.live == nil {
		return
	}
	for _, mb := range e.live.order {
		m.answerJoin(e.live, mb, joinError(coordinatorLoadInProgress, mb.id), out)
		m.answerSync(mb, syncError(coordinatorLoadInProgress), out)
	}
	m.bury(e)
}

// quarantined lists the groups in quarantine that are known: those that were
// unreadable when the shard opened, and those found since.
func (m *Machine) quarantined() []Quarantine {
	var out []Quarantine
	for _, id := range m.sorted() {
		if !m.dir[id].quarantined {
			continue
		}
		q := Quarantine{Group: id}
		m.hard.Group(id).Problems(func(r state.Record) {
			q.Problems = append(q.Problems, Problem{Key: r.Key, Value: r.Value, Err: r.Problem})
		})
		out = append(out, q)
	}
	return out
}
