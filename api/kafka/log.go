package kafka

import (
	"errors"
	"sync"
	"time"
)

// A flood of bad requests writes badLines lines in each badEvery and then only how
// many more there were.
const (
	badLines = 20
	badEvery = 10 * time.Second
)

// rate bounds log lines.
type rate struct {
	mu      sync.Mutex
	since   time.Time
	lines   int
	dropped int
}

// allow says whether a line may be written, and how many were not before it.
func (r *rate) allow(now time.Time) (dropped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= badEvery {
		r.since, r.lines = now, 0
	}
	if r.lines >= badLines {
		r.dropped++
		return 0, false
	}
	r.lines++
	dropped, r.dropped = r.dropped, 0
	return dropped, true
}

// warn writes why a connection was ended. That it was at rest is nobody's mistake.
func (s *Server) warn(c *conn, err error) {
	if errors.Is(err, errIdle) || errors.Is(err, errRested) {
		s.o.Log.Debug().Err(err).Str("client", c.remote).Msg("connection closed")
		return
	}
	dropped, ok := s.bad.allow(time.Now())
	if !ok {
		return
	}
	e := s.o.Log.Warn().Err(err).Str("client", c.remote)
	if bad, ok := errors.AsType[*badRequest](err); ok {
		e = e.Int("bytes", bad.size)
	}
	if r, ok := errors.AsType[*refused](err); ok {
		e = e.Int16("api", r.key).Str("name", apiName(r.key)).Int16("version", r.version)
	}
	if dropped > 0 {
		e = e.Int("unlogged", dropped)
	}
	e.Msg("connection closed")
}
