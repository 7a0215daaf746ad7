package clienttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKillLoop kills kcoord again and again under a group that consumes what is being
// produced, with members that come and go, and an auditor that asks all the time for
// what was promised. In the end every record was consumed at least once.
func TestKillLoop(t *testing.T) {
	t.Parallel()
	kills := 16
	if testing.Short() {
		kills = 2
	}
	g := newGroup(t, franz("kgo", ""), start(t))
	for _, c := range []string{"anna", "ben", "carla"} {
		g.join(c, "")
	}
	g.shared()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { g.keepProducing(ctx, func() bool { return true }) })
	all.Go(func() { g.audit(ctx) })
	for i := range kills {
		before := g.ledger.acknowledgements()
		until(t, "the group goes on", func() error {
			if n := g.ledger.acknowledgements() - before; n < 60 {
				return fmt.Errorf("%d acknowledgements", n)
			}
			return nil
		})
		g.kcoord.kill()
		g.kcoord.restart()
		switch i % 4 { // a rebalance is under way when it is killed next
		case 1:
			g.join("dora", "")
		case 3:
			g.leave("dora")
		}
	}
	stop()
	all.Wait()
	g.shared()
	e := g.ends()
	until(t, "everything is consumed", func() error { return g.ledger.allConsumed(e) })
	g.kept()
	t.Logf("%d acknowledged offsets, partitions end at %v", g.ledger.acknowledgements(), e)
}

// keepProducing writes a record to each partition whenever it may, and maybe one twice,
// when an answer was lost with kcoord. The data plane forgets producers' numbers in a
// crash, so it goes without them.
func (g *group) keepProducing(ctx context.Context, may func() bool) {
	c := g.kcoord.client(kgo.DisableIdempotentWrite())
	for ctx.Err() == nil {
		if !may() {
			pause(ctx)
			continue
		}
		if err := g.kcoord.produce(ctx, c, topic, partitions, 1); err != nil && ctx.Err() == nil {
			g.t.Error(err)
			return
		}
	}
}

// audit asks for offsets in the name of nobody. While kcoord is dead it is not answered.
func (g *group) audit(ctx context.Context) {
	for ctx.Err() == nil && !g.t.Failed() {
		promised := g.ledger.promised()
		committed, err := g.admin.committed(g.id, topic, partitions)
		if err == nil {
			err = kept(promised, committed)
			if err != nil {
				g.t.Error(err)
			}
		}
		pause(ctx)
	}
}

func (g *group) ends() ends {
	g.t.Helper()
	e := ends{}
	until(g.t, "the topic's end is known", func() error {
		os, err := kadm.NewClient(g.kcoord.client()).ListEndOffsets(g.t.Context(), topic)
		if err != nil {
			return err
		}
		os.Each(func(o kadm.ListedOffset) { e[o.Partition] = o.Offset })
		return os.Error()
	})
	return e
}
