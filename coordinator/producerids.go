package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// ProducerIDs gives out producer ids that nobody ever had and nobody else will get: the
// cluster's, so that they don't meet those that its brokers give out themselves.
type ProducerIDs interface {
	// Fresh returns one or more, at most n.
	Fresh(ctx context.Context, n int) ([]txn.ProducerID, error)
}

const (
	// poolFull is how many ids are kept ready, and poolLow when more are asked for. What is in
	// the pool when the process ends is given to nobody.
	poolFull, poolLow = 64, 16
	// poolRetry is how long after a failure nobody is asked again unless somebody waits.
	poolRetry = time.Second
)

// idPool keeps producer ids ready, so that a new producer does not wait for the broker.
type idPool struct {
	from   ProducerIDs
	log    zerolog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	ready   []txn.ProducerID
	waiting []func(txn.ProducerID, error)
	asking  bool
	failed  time.Time // when asking failed last
	silent  bool      // that it fails has been said
	asked   int64
}

func newIDPool(from ProducerIDs, log zerolog.Logger) *idPool {
	p := &idPool{from: from, log: log}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// take hands over an id that nobody else gets. reply is called once, maybe before take
// returns; with an error that wraps ErrLoading where none can be had now.
func (p *idPool) take(reply func(txn.ProducerID, error)) {
	p.mu.Lock()
	if p.from == nil || p.ctx.Err() != nil {
		p.mu.Unlock()
		reply(0, fmt.Errorf("%w: no producer ids can be had", ErrLoading))
		return
	}
	if len(p.ready) == 0 {
		p.waiting = append(p.waiting, reply)
		p.ask()
		p.mu.Unlock()
		return
	}
	last := len(p.ready) - 1
	id := p.ready[last]
	p.ready = p.ready[:last]
	if last <= poolLow && time.Since(p.failed) > poolRetry {
		p.ask()
	}
	p.mu.Unlock()
	reply(id, nil)
}

// ask asks for more unless that is under way. REQUIRES mu.
func (p *idPool) ask() {
	if p.asking {
		return
	}
	p.asking = true
	p.done.Go(func() {
		// First what is waited for, since one takes a round trip.
		n := 1
		for p.refill(n) {
			n = poolFull
		}
	})
}

// refill asks once, hands over what is waited for, and says whether there is more to ask for.
func (p *idPool) refill(most int) (more bool) {
	ids, err := p.from.Fresh(p.ctx, most)
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("none were given")
	}
	p.mu.Lock()
	p.ready = append(p.ready, ids...)
	p.asked += int64(len(ids))
	served := p.waiting
	if err == nil {
		served = served[:min(len(served), len(p.ready))]
	}
	p.waiting = p.waiting[len(served):]
	given := make([]txn.ProducerID, 0, len(served))
	for range min(len(served), len(p.ready)) {
		last := len(p.ready) - 1
		given, p.ready = append(given, p.ready[last]), p.ready[:last]
	}
	say := err != nil && !p.silent && p.ctx.Err() == nil
	p.silent = err != nil
	if err != nil {
		p.failed = time.Now()
	}
	more = err == nil && len(p.ready) < poolFull && p.ctx.Err() == nil
	if !more {
		p.asking = false
	}
	p.mu.Unlock()
	if say {
		p.log.Warn().Err(err).Msg("the broker gives out no producer ids: new transactional producers are told to try again")
	}
	for i, reply := range served {
		if i < len(given) {
			reply(given[i], nil)
		} else {
			reply(0, fmt.Errorf("%w: no producer id: %w", ErrLoading, err))
		}
	}
	return more
}

func (p *idPool) count() (ready int, asked int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready), p.asked
}

// close tells who waits that there are none.
func (p *idPool) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.done.Wait()
	p.mu.Lock()
	left := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, reply := range left {
		reply(0, ErrNotCoordinator)
	}
}
