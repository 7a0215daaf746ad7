package kafka

import (
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// What Kafka answers without ACLs to who asks for authorized operations: READ, DELETE,
// DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS of a group. And to who does not.
const (
	allGroupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
	notAsked           = math.MinInt32
)

// describeGroups asks each group's shard. By version:
//
//	3   authorized operations, where they are asked for and the group has no error
//	6   a group that does not exist is GROUP_ID_NOT_FOUND (KIP-1043); before it, Dead without an error
func (k *call) describeGroups(body []byte) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	reqs := make([]group.Request, len(req.Groups))
	for i, id := range req.Groups {
		reqs[i] = group.Describe{Group: id}
	}
	include := k.version >= 3 && req.IncludeAuthorizedOperations
	k.askAll(reqs, func(k *call, _ group.Response, err error) kmsg.Response {
		out := kmsg.NewPtrDescribeGroupsResponse()
		out.Groups = make([]kmsg.DescribeGroupsResponseGroup, 0, len(req.Groups))
		for i, id := range req.Groups {
			p := k.partOr(i, err)
			out.Groups = append(out.Groups, describedGroup(k.version, id, p, include))
			k.failed(out.Groups[i].ErrorCode)
		}
		return out
	})
	return nil
}

func describedGroup(version int16, id string, p part, include bool) kmsg.DescribeGroupsResponseGroup {
	g := kmsg.NewDescribeGroupsResponseGroup()
	if p.err != nil {
		g.Group, g.ErrorCode = id, code(p.err)
		return g
	}
	g = *p.resp.(*kmsg.DescribeGroupsResponseGroup)
	if g.ErrorCode == codeGroupNotFound {
		if version < 6 {
			g.ErrorCode, g.ErrorMessage = 0, nil
		} else if g.ErrorMessage == nil {
			g.ErrorMessage = kmsg.StringPtr("Group " + id + " not found.")
		}
	}
	g.AuthorizedOperations = notAsked
	if include && g.ErrorCode == 0 {
		g.AuthorizedOperations = allGroupOperations
	}
	return g
}

// partOr is the reply to a part of a fan-out; err where the call was abandoned before it came.
func (k *call) partOr(i int, err error) part {
	if err != nil {
		return part{err: err}
	}
	return k.parts[i]
}
