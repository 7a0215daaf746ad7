package main

import (
	"context"
	"time"
)

// decoy is a second kcoord, at which they misbehave in every third phase: cores and the kernel are shared
// then as ever, but no process. It has as many groups and offsets as the first, so that the same
// requests are the same work, and hardly any load of its own.
type decoy struct {
	server *server
	fleet  *fleet
	rest   func() // ends what the fleet sends
}

// decoy starts one, and waits until all of its offsets are there.
func (p plan) decoy(ctx context.Context, upstream, folder string) (*decoy, error) {
	s, err := start(ctx, p, upstream, folder)
	if err != nil {
		return nil, err
	}
	lone := p
	lone.connections = p.groups // one member a group, which has all of its offsets
	lone.beatEvery, lone.commitEvery, lone.fetchEvery = session/4, time.Second, time.Hour
	f, err := gather(ctx, lone, s.addr)
	if err != nil {
		s.kill()
		return nil, err
	}
	d := &decoy{server: s, fleet: f, rest: f.send(ctx)}
	if err := f.warm(ctx); err != nil {
		d.close()
		return nil, err
	}
	d.rest()
	f.commitEvery = time.Hour
	d.rest = f.send(ctx)
	return d, nil
}

func (d *decoy) close() {
	d.rest()
	d.fleet.close()
	d.server.kill()
}
