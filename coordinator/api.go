package coordinator

import "github.com/kcoord/kcoord/coordinator/shard"

// Errors of a Node's answers. api/kafka maps them to Kafka's codes.
var (
	// ErrNotCoordinator says that the shard was lost (its log failed, or the
	// node is closing) before the request was durable: whether it took effect is
	// unknown. Kafka: NOT_COORDINATOR.
	ErrNotCoordinator = shard.ErrLost
	// ErrLoading says that the shard cannot be read now. Kafka: COORDINATOR_LOAD_IN_PROGRESS.
	ErrLoading = shard.ErrLoading
)
