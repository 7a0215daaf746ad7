package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator"
)

// Codes that are set or looked for here. Those of groups are the coordinator's.
var (
	codeUnknownTopicOrPartition  = kerr.UnknownTopicOrPartition.Code
	codeUnknownTopicID           = kerr.UnknownTopicID.Code
	codeNotAvailable             = kerr.CoordinatorNotAvailable.Code
	codeLoading                  = kerr.CoordinatorLoadInProgress.Code
	codeNotCoordinator           = kerr.NotCoordinator.Code
	codeGroupNotFound            = kerr.GroupIDNotFound.Code
	codeIllegalGeneration        = kerr.IllegalGeneration.Code
	codeUnknownMember            = kerr.UnknownMemberID.Code
	codeInconsistentProtocol     = kerr.InconsistentGroupProtocol.Code
	codeInvalidRequest           = kerr.InvalidRequest.Code
	codeUnsupportedVersion       = kerr.UnsupportedVersion.Code
	codeTopicAuthorizationFailed = kerr.TopicAuthorizationFailed.Code
	codeRebootstrap              = kerr.RebootstrapRequired.Code
)

// Errors that end a connection.
var (
	errTooLarge   = errors.New("a request longer than socket.request.max.bytes")
	errTLS        = fmt.Errorf("%w: it looks like the beginning of TLS, which kcoord does not speak: clients need security.protocol=PLAINTEXT", errTooLarge)
	errHTTP       = fmt.Errorf("%w: it looks like HTTP or gRPC, which have ports of their own (http, admin)", errTooLarge)
	errNegative   = errors.New("a request of negative or no length")
	errMalformed  = errors.New("a request that does not parse")
	errUnknownAPI = errors.New("a request for an API that is not served here")
	errVersion    = errors.New("a request in a version that is not served here")
	errUpstream   = errors.New("the broker behind cannot be reached or hung up")
	errRested     = fmt.Errorf("%w while nothing was asked of it", errUpstream)
	errMismatch   = errors.New("the broker behind answered something that was not asked")
	errSockets    = errors.New("too many connections for the limit of open files, of which the log needs some: raise it (LimitNOFILE, ulimit -n), or set max.connections")
	errLimit      = errors.New("too many connections (max.connections or max.connections.per.ip)")
	errIdle       = errors.New("nothing came or went for connections.max.idle.ms")
	errClientGone = errors.New("the client hung up, or its half of the connection")
	errRefused    = errors.New("a Produce without an answer (acks=0) to a transaction that does not take it")
	errDrained    = errors.New("shutting down")
)

// code maps an error of the coordinator to Kafka's code.
func code(err error) int16 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, coordinator.ErrNotCoordinator):
		return codeNotCoordinator
	case errors.Is(err, coordinator.ErrLoading):
		return codeLoading
	case errors.Is(err, coordinator.ErrNoTransactions):
		return codeUnsupportedVersion
	case errors.Is(err, upstream.ErrUnavailable):
		return codeNotAvailable
	}
	return kerr.UnknownServerError.Code
}
