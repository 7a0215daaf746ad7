package kafka

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// listGroups asks every shard. By version: 4 filters by state and shows it (KIP-518), 5
// the same by type (KIP-848); kmsg leaves out what older ones do not have.
func (k *call) listGroups(body []byte) error {
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	list := group.List{States: req.StatesFilter, Types: req.TypesFilter}
	k.answer = shapeList
	k.c.srv.o.Coordinator.EachGroup(list, func(resps []group.Response, err error) { k.reply(resps, err) })
	return nil
}

func shapeList(k *call, resp group.Response, err error) kmsg.Response {
	out := kmsg.NewPtrListGroupsResponse()
	out.ErrorCode = code(err)
	k.failed(out.ErrorCode)
	if err != nil {
		return out
	}
	for _, r := range resp.([]group.Response) {
		out.Groups = append(out.Groups, r.([]kmsg.ListGroupsResponseGroup)...)
	}
	// No such group can be made, and one in a damaged log must not make the answer unreadable.
	out.Groups = slices.DeleteFunc(out.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return len(g.Group) > math.MaxInt16 })
	return out
}
