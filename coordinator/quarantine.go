package coordinator

import (
	"sync"

	"github.com/rs/zerolog"
)

// quarantine remembers which groups or transactional ids have records that cannot be
// read, to say it once for each record.
type quarantine struct {
	log  zerolog.Logger
	what string

	mu   sync.Mutex
	seen map[string]map[string]bool // id → key
}

// add is told of every unreadable record, each time that it is read.
func (q *quarantine) add(id string, key []byte, problem error) {
	q.mu.Lock()
	if q.seen == nil {
		q.seen = map[string]map[string]bool{}
	}
	if q.seen[id] == nil {
		q.seen[id] = map[string]bool{}
	}
	again := q.seen[id][string(key)]
	q.seen[id][string(key)] = true
	q.mu.Unlock()
	if !again {
		q.log.Error().Str(q.what, id).Hex("key", key).Err(problem).
			Msgf("a record cannot be read: its %s is in quarantine, all others go on", q.what)
	}
}
