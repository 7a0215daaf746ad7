package main

import (
	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/api/kafka"
	"github.com/kcoord/kcoord/config"
)

// reload takes over what can change, and says what it did. Settings that are wrong
// change nothing.
func (s *server) reload() {
	s.notify.reloading()
	defer s.notify.ready()
	next, err := s.load()
	if err != nil {
		s.log.Error().Msgf("SIGHUP: nothing is changed: %s", oneLine(err))
		return
	}
	s.mu.Lock()
	was := s.running
	running, changes := was.Reload(next)
	s.running = running
	s.mu.Unlock()
	s.kafka.Limit(limits(running))
	s.upstream.Configure(running.TopicsRefresh, running.TopicsMaxAge)
	s.node.Configure(running.Group)
	zerolog.SetGlobalLevel(min(levelOf(was), levelOf(running))) // so that either has the lines about the change
	for _, c := range changes {
		if c.Effective {
			s.log.Info().Msgf("SIGHUP: %s", c)
		} else {
			s.log.Warn().Msgf("SIGHUP: %s", c)
		}
	}
	if len(changes) == 0 {
		s.log.Info().Msg("SIGHUP: no setting has changed")
	}
	zerolog.SetGlobalLevel(levelOf(running))
}

func limits(c config.Config) kafka.Limits {
	return kafka.Limits{
		MaxRequestBytes: c.MaxRequestBytes, MaxIdle: c.MaxIdle,
		MaxConnections: c.MaxConnections, MaxConnectionsPerIP: c.MaxConnectionsPerIP,
	}
}
