package group

import "github.com/twmb/franz-go/pkg/kmsg"

// describe tells what is live of a classic group.
func (m *Machine) describe(e *entry) *kmsg.DescribeGroupsResponseGroup {
	g := e.live
	switch {
	case g == nil && e.stored:
		return describeError(e.id, groupIDNotFound, "Group "+e.id+" is not a classic group.")
	case g == nil:
		return describeError(e.id, groupIDNotFound, "Group "+e.id+" not found.")
	}
	resp := kmsg.NewDescribeGroupsResponseGroup()
	resp.Group, resp.State, resp.ProtocolType = g.id, g.state.String(), g.protocolType
	stable := g.state == stateStable
	if stable && g.protocol != nil {
		resp.Protocol = *g.protocol
	}
	resp.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(g.order))
	for i, mb := range g.order {
		d := kmsg.DescribeGroupsResponseGroupMember{
			MemberID: mb.id, InstanceID: mb.instance, ClientID: mb.clientID, ClientHost: mb.clientHost, MemberAssignment: mb.assignment,
		}
		if stable { // else it may have no metadata for the protocol
			d.ProtocolMetadata = mb.metadata(g.protocol)
		}
		resp.Members[i] = d
	}
	return &resp
}

func describeError(id string, code int16, message string) *kmsg.DescribeGroupsResponseGroup {
	resp := kmsg.NewDescribeGroupsResponseGroup()
	resp.Group, resp.State, resp.ErrorCode, resp.ErrorMessage = id, stateDead.String(), code, &message
	return &resp
}
