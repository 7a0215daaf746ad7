package coordinator

import (
	"sync"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// gate holds markers back while what their producer writes, offsets or records, is between the shard that lets it
// into the transaction and where it goes: what set out before the marker. Whoever begins later finds
// the transaction decided, and must not hold its marker back: a producer that is told to
// come again could do so for ever.
type gate[P comparable] struct {
	mu      sync.Mutex
	between map[P][]*crossing // by producer, the first first; the markers of one wait for all before, too
}

type crossing struct {
	out     int      // what has not arrived
	waiting []func() // markers: nobody sets out with it any more
}

func (g *gate[P]) enter(producer P) *crossing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.between == nil {
		g.between = map[P][]*crossing{}
	}
	all := g.between[producer]
	if n := len(all); n > 0 && all[n-1].waiting == nil {
		all[n-1].out++
		return all[n-1]
	}
	c := &crossing{out: 1}
	g.between[producer] = append(all, c)
	return c
}

func (g *gate[P]) leave(producer P, c *crossing) {
	g.mu.Lock()
	c.out--
	all := g.between[producer]
	var free []func()
	for len(all) > 0 && all[0].out == 0 {
		free = append(free, all[0].waiting...)
		all = all[1:]
	}
	if g.between[producer] = all; len(all) == 0 {
		delete(g.between, producer)
	}
	g.mu.Unlock()
	for _, f := range free {
		f()
	}
}

// after runs f when what the producer has on its way now has arrived: at once, or later.
func (g *gate[P]) after(producer P, f func()) {
	g.mu.Lock()
	if all := g.between[producer]; len(all) > 0 {
		last := all[len(all)-1]
		last.waiting = append(last.waiting, f)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	f()
}

// throughGate asks a transaction's shard whether what its producer writes may go where it goes. It then is in the gate, until
// arrived is called, which has to be once. When the patient are told that the transaction before is not complete,
// that is waited for outside of the gate, where its own marker may wait.
func throughGate[P comparable](
	n *Node, g *gate[P], producer P, ask txn.Request, patient bool, reply func(resp txn.Response, arrived func(), err error),
) {
	in := g.enter(producer)
	arrived := func() { g.leave(producer, in) }
	n.txnShard(ask).Do(ask, func(resp txn.Response, err error) {
		if err != nil || !patient || !tooEarly(resp) {
			reply(resp, arrived, err)
			return
		}
		arrived()
		n.Txn(ask, func(resp txn.Response, err error) {
			if err != nil || tooEarly(resp) {
				reply(resp, func() {}, err)
				return
			}
			throughGate(n, g, producer, ask, false, reply)
		})
	})
}
