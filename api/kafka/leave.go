package kafka

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// leaveGroup: before version 3 (KIP-345) a request is about one member, and its
// answer has one code.
func (k *call) leaveGroup(body []byte) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	if k.version < 3 {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = req.MemberID
		req.Members = []kmsg.LeaveGroupRequestMember{m}
	}
	k.ask(group.Leave{LeaveGroupRequest: req}, shapeLeave)
	return nil
}

func shapeLeave(k *call, resp group.Response, err error) kmsg.Response {
	var out *kmsg.LeaveGroupResponse
	if err != nil {
		out = kmsg.NewPtrLeaveGroupResponse()
		out.ErrorCode = code(err)
	} else {
		out = resp.(*kmsg.LeaveGroupResponse)
	}
	k.failed(out.ErrorCode)
	for i := range out.Members {
		k.failed(out.Members[i].ErrorCode)
	}
	if k.version < 3 && out.ErrorCode == 0 && len(out.Members) > 0 {
		top := kmsg.NewPtrLeaveGroupResponse()
		top.ErrorCode = out.Members[0].ErrorCode
		return top
	}
	return out
}
