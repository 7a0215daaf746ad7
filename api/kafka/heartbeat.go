package kafka

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// heartbeat is the same in all versions.
func (k *call) heartbeat(body []byte) error {
	d := decoder{b: body, flexible: k.version >= k.api.flexible}
	req, c := &k.beat, k.c
	c.group = intern(c.group, d.str())
	generation := d.int32()
	c.member = intern(c.member, d.str())
	c.instance = nilBefore(k.version, 3, c.instance, &d)
	d.tags()
	if d.bad {
		return errMalformed
	}
	req.Version, req.Group, req.Generation, req.MemberID, req.InstanceID = k.version, c.group, generation, c.member, c.instance
	k.ask(group.Heartbeat{HeartbeatRequest: req}, shapeHeartbeat)
	return nil
}

// shapeHeartbeat: while its shard loads, a member is told that all is well, or it
// would give up a session that is about to be read.
func shapeHeartbeat(k *call, resp group.Response, err error) kmsg.Response {
	var out *kmsg.HeartbeatResponse
	if err != nil {
		out = kmsg.NewPtrHeartbeatResponse()
		if out.ErrorCode = code(err); out.ErrorCode == codeLoading {
			out.ErrorCode = 0
		}
	} else {
		out = resp.(*kmsg.HeartbeatResponse)
	}
	k.failed(out.ErrorCode)
	return out
}
