package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// deleteGroups asks each group's shard, once a group however often it is named.
func (k *call) deleteGroups(body []byte) error {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	seen := make(map[string]bool, len(req.Groups))
	groups := slices.DeleteFunc(req.Groups, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
	reqs := make([]group.Request, len(groups))
	for i, id := range groups {
		reqs[i] = group.Delete{Group: id}
	}
	k.askAll(reqs, func(k *call, _ group.Response, err error) kmsg.Response {
		out := kmsg.NewPtrDeleteGroupsResponse()
		for i, id := range groups {
			g := kmsg.NewDeleteGroupsResponseGroup()
			if p := k.partOr(i, err); p.err != nil {
				g.Group, g.ErrorCode = id, code(p.err)
			} else {
				g = *p.resp.(*kmsg.DeleteGroupsResponseGroup)
			}
			k.failed(g.ErrorCode)
			out.Groups = append(out.Groups, g)
		}
		return out
	})
	return nil
}
