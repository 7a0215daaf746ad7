package kafka

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// joinGroup, by version:
//
//	0    has no rebalance timeout: the session timeout is meant
//	4    a new dynamic member is told its id first (KIP-394)
//	5    instance ids; kmsg leaves them out of older ones
//	7    the protocol type; no protocol is null, before it ""
//	9    a static leader that returns is told to skip the assignment (KIP-814)
func (k *call) joinGroup(body []byte) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = k.version
	// The group keeps the protocols' metadata, so they must not lie in the read buffer.
	if err := readRequest(req, bytes.Clone(body)); err != nil {
		return err
	}
	if k.version == 0 {
		req.RebalanceTimeoutMillis = req.SessionTimeoutMillis
	}
	k.ask(group.Join{
		Client:           group.Client{ID: k.c.clientID, Host: k.c.host},
		JoinGroupRequest: req,
		MemberIDRequired: k.version >= 4,
		SkipsAssignment:  k.version >= 9,
	}, shapeJoin)
	return nil
}

func shapeJoin(k *call, resp group.Response, err error) kmsg.Response {
	var out *kmsg.JoinGroupResponse
	if err != nil {
		out = kmsg.NewPtrJoinGroupResponse()
		out.ErrorCode, out.Generation = code(err), -1
	} else {
		out = resp.(*kmsg.JoinGroupResponse)
	}
	switch {
	case k.version < 7 && out.Protocol == nil:
		out.Protocol = kmsg.StringPtr("")
	case k.version >= 7 && out.Protocol != nil && *out.Protocol == "":
		out.Protocol = nil
	}
	k.failed(out.ErrorCode)
	return out
}
