package kafka

import (
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// Names of states and types, as they are shown. Filters may spell them in any case.
var (
	groupStates = []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady"}
	groupTypes  = []string{"classic", "consumer", "share", "streams"}
)

// listGroups asks every shard. By version: 4 filters by state and shows it (KIP-518), 5
// the same by type (KIP-848); kmsg leaves out what older ones do not have.
func (k *call) listGroups(body []byte) error {
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	list := group.List{States: spelled(req.StatesFilter, groupStates), Types: spelled(req.TypesFilter, groupTypes)}
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

// spelled turns filters into the names that are meant. What is no name at all
// stays, and lets nothing pass.
func spelled(filters, names []string) []string {
	for i, f := range filters {
		for _, n := range names {
			if strings.EqualFold(f, n) {
				filters[i] = n
			}
		}
	}
	return filters
}
