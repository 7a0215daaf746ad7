package kafka

import (
	"sync/atomic"
	"time"
)

// Limits are what can change while the server runs. Zero values are Kafka's defaults.
type Limits struct {
	MaxRequestBytes     int           // socket.request.max.bytes
	MaxConnections      int           // max.connections
	MaxConnectionsPerIP int           // max.connections.per.ip
	MaxIdle             time.Duration // connections.max.idle.ms
}

func (l *Limits) defaults() {
	if l.MaxRequestBytes <= 0 {
		l.MaxRequestBytes = 100 << 20
	}
	if l.MaxConnections <= 0 {
		l.MaxConnections = 1<<31 - 1
	}
	if l.MaxConnectionsPerIP <= 0 {
		l.MaxConnectionsPerIP = 1<<31 - 1
	}
	if l.MaxIdle <= 0 {
		l.MaxIdle = 10 * time.Minute
	}
}

// Limit changes the limits: from the next connection on, and for each connection from
// the request after its next on. None is closed for there being too many.
func (s *Server) Limit(l Limits) {
	l.defaults()
	s.limits.Store(&l)
}

// sweepEvery is how often it is looked for idle connections.
func (l *Limits) sweepEvery() time.Duration {
	return min(max(l.MaxIdle/8, 10*time.Millisecond), 15*time.Second)
}

// openSockets counts what may be open at a time. Were it left to the limit of open files, a flood of
// connections would leave none to the log, which ends the process.
type openSockets struct {
	open atomic.Int64
	most int64 // 0: as many as there are
}

func (s *openSockets) take() bool {
	if n := s.open.Add(1); s.most > 0 && n > s.most {
		s.give()
		return false
	}
	return true
}

func (s *openSockets) give() { s.open.Add(-1) }
