package kafka

import (
	"sync"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/api/kafka/upstream"
)

// commit is the memory of an OffsetCommit, used again for the next one.
type commit struct {
	req    kmsg.OffsetCommitRequest
	parts  []kmsg.OffsetCommitRequestTopicPartition // of all topics
	text   []byte                                   // of all partitions' metadata
	metas  []string                                 // they lie in text
	topics []*upstream.Topic                        // of req.Topics; nil: not found
	failed []failure                                // what the coordinator is not asked for
}

// Memory of requests with more partitions than keptParts is for others that have as
// many, and let go with more than mostParts.
const keptParts, mostParts = 1024, 64 << 10

// leastPartition is the fewest bytes that a partition of a request takes.
const leastPartition = 14

// largeCommits are those that nobody uses.
var largeCommits sync.Pool

// ready takes memory for a request of as many partitions as these bytes may hold.
func (m *commit) ready(bytes int) {
	if bytes <= leastPartition*max(keptParts, cap(m.parts)) {
		return
	}
	if large, used := largeCommits.Get().(*commit); used {
		*m = *large
	}
}

// reset forgets the request.
func (m *commit) reset() {
	most := max(cap(m.parts), cap(m.req.Topics), cap(m.failed), cap(m.text)/leastPartition)
	if most > mostParts {
		*m = commit{}
		return
	}
	m.clear()
	if most > keptParts {
		large := *m
		largeCommits.Put(&large)
		*m = commit{}
	}
}

func (m *commit) clear() {
	clear(m.parts)
	clear(m.metas)
	clear(m.topics)
	clear(m.req.Topics)
	m.req.Topics, m.parts, m.text, m.metas = m.req.Topics[:0], m.parts[:0], m.text[:0], m.metas[:0]
	m.topics, m.failed = m.topics[:0], m.failed[:0]
}

// keep copies b into text. What lies there stays there, also when text gets to be another.
func (m *commit) keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if cap(m.text)-len(m.text) < len(b) {
		m.text = make([]byte, 0, max(2*cap(m.text), len(b)))
	}
	at := len(m.text)
	m.text = append(m.text, b...)
	return unsafe.String(&m.text[at], len(b))
}
