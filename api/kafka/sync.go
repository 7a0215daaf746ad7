package kafka

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// syncGroup: version 5 says which protocol is meant, and must (KIP-559); older
// versions leave both names null, which the group takes for "whichever it is".
func (k *call) syncGroup(body []byte) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = k.version
	if err := readRequest(req, bytes.Clone(body)); err != nil { // assignments are kept
		return err
	}
	if k.version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.ErrorCode = codeInconsistentProtocol
		k.failed(resp.ErrorCode)
		k.done(resp)
		return nil
	}
	k.ask(group.Sync{SyncGroupRequest: req}, shapeSync)
	return nil
}

func shapeSync(k *call, resp group.Response, err error) kmsg.Response {
	var out *kmsg.SyncGroupResponse
	if err != nil {
		out = kmsg.NewPtrSyncGroupResponse()
		out.ErrorCode = code(err)
	} else {
		out = resp.(*kmsg.SyncGroupResponse)
	}
	k.failed(out.ErrorCode)
	return out
}
