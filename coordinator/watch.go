package coordinator

import (
	"sync"
	"sync/atomic"

	"github.com/kcoord/kcoord/coordinator/group"
)

// watchers are those who want to hear when a group's state or members change. A
// shard that nobody watches pays one atomic load a step.
type watchers struct {
	count atomic.Int32
	mu    sync.Mutex
	of    map[string]map[*watcher]struct{}
}

// watcher has room for one signal: who is slow hears once of many changes, and
// keeps nobody waiting.
type watcher struct {
	changed chan struct{}
	last    group.Glimpse
}

// Watch signals, on the channel that it returns, when a group's state or members may
// have changed since the last signal was taken. What there is then, Group is asked
// for: its answer is of what is durable. stop must be called.
func (n *Node) Watch(id string) (changed <-chan struct{}, stop func()) {
	w := &watcher{changed: make(chan struct{}, 1)}
	ws := &n.watched[ShardOf(id, len(n.shards))]
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.of == nil {
		ws.of = map[string]map[*watcher]struct{}{}
	}
	if ws.of[id] == nil {
		ws.of[id] = map[*watcher]struct{}{}
	}
	ws.of[id][w] = struct{}{}
	ws.count.Add(1)
	return w.changed, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if _, there := ws.of[id][w]; !there {
			return
		}
		delete(ws.of[id], w)
		if len(ws.of[id]) == 0 {
			delete(ws.of, id)
		}
		ws.count.Add(-1)
	}
}

// stepped is called by a shard after each step, under its lock; m is nil when the
// shard has lost its machine.
func (ws *watchers) stepped(m *group.Machine) {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for id, all := range ws.of {
		var now group.Glimpse
		if m != nil {
			now = m.Glimpse(id)
		}
		for w := range all {
			if m != nil && now == w.last {
				continue
			}
			w.last = now
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}
