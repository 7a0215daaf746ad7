package coordinator

import (
	"sync"

	"github.com/rs/zerolog"
)

// quarantine remembers which groups have records that cannot be read, to say it
// once for each record and to count them.
type quarantine struct {
	log zerolog.Logger

	mu   sync.Mutex
	seen map[string]map[string]bool // group → key
}

// add is told of every unreadable record, each time that it is read.
func (q *quarantine) add(group string, key []byte, problem error) {
	q.mu.Lock()
	if q.seen == nil {
		q.seen = map[string]map[string]bool{}
	}
	if q.seen[group] == nil {
		q.seen[group] = map[string]bool{}
	}
	again := q.seen[group][string(key)]
	q.seen[group][string(key)] = true
	q.mu.Unlock()
	if !again {
		q.log.Error().Str("group", group).Hex("key", key).Err(problem).
			Msg("a record cannot be read: its group is in quarantine, all others go on")
	}
}

// QuarantinedGroups is how many groups were put into quarantine since the start.
func (n *Node) QuarantinedGroups() int {
	n.bad.mu.Lock()
	defer n.bad.mu.Unlock()
	return len(n.bad.seen)
}
