package kafka

import (
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Types of coordinators.
const (
	groupCoordinator       = 0
	transactionCoordinator = 1
	shareCoordinator       = 2
)

// findCoordinator says that the coordinator is here: of groups, and of
// transactional ids too, which are not asked of the broker.
//
//	group, transaction   this node
//	share                INVALID_REQUEST: there is none, as in a Kafka without share groups
//	any other            INVALID_REQUEST
//
// The node id is that of the broker behind, since its clients know it as one node
// with us; a gateway's is that of the broker whose port the client has come to. Until the broker has told it: COORDINATOR_NOT_AVAILABLE, and clients ask again.
func (k *call) findCoordinator(body []byte) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	if req.Version == 0 {
		req.CoordinatorType = groupCoordinator
	}
	code, at := k.c.coordinator(req.CoordinatorType)
	k.failed(code)
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if k.version < 4 {
		// Kafka's message of no error is "NONE" here.
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = code, at.id, at.host, at.port
		resp.ErrorMessage = kmsg.StringPtr("NONE")
		if e := kerr.TypedErrorForCode(code); e != nil {
			resp.ErrorMessage = &e.Description
		}
		k.done(resp)
		return nil
	}
	message := "" // newer versions tell of a type alone that Kafka does not have
	if req.CoordinatorType < 0 || req.CoordinatorType > shareCoordinator {
		message = kerr.InvalidRequest.Description
	}
	for _, key := range req.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.ErrorCode, c.NodeID, c.Host, c.Port = key, code, at.id, at.host, at.port
		c.ErrorMessage = &message
		resp.Coordinators = append(resp.Coordinators, c)
	}
	k.done(resp)
	return nil
}

// node is where a coordinator is.
type node struct {
	id   int32
	host string
	port int32
}

// coordinator says where that of a type is.
func (c *conn) coordinator(typ int8) (code int16, at node) {
	none := node{id: -1, port: -1}
	if typ != groupCoordinator && typ != transactionCoordinator {
		return codeInvalidRequest, none
	}
	if c.srv.o.Gateway != nil {
		if id := c.coordinatorNode(); id >= 0 {
			if at, ok := c.srv.o.Gateway.address(id, c.localHost()); ok {
				return 0, node{id, at.Host, int32(at.Port)}
			}
		}
		return codeNotAvailable, none
	}
	cluster, known := c.srv.o.Upstream.Cluster()
	if !known || cluster.NodeID < 0 {
		return codeNotAvailable, none
	}
	address := c.srv.o.Advertised
	if address == "" {
		address = c.nc.LocalAddr().String()
	}
	host, port, err := net.SplitHostPort(address)
	n, err2 := strconv.ParseInt(port, 10, 32)
	if err != nil || err2 != nil {
		return codeNotAvailable, none
	}
	return 0, node{cluster.NodeID, host, int32(n)}
}
