package coordinator

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/machine"
)

// Stats are what a node's metrics are made of.
type Stats struct {
	Groups   group.Census
	Counters group.Counters // since the node was opened; Quarantined: how many are
	Open     int            // shards that are open
	Shards   int
	Loads    LoadTimes
	Resident int // groups and offsets in memory
	Gated    int // replies that wait for the disk
	Parked   int // requests that wait for other members or a timer
}

// LoadTimes says how long openings of shards took.
type LoadTimes struct {
	Count    int
	Sum, Max time.Duration
}

// tally keeps what a shard's machines have counted, of which each begins with 0. Its
// shard's lock guards it.
type tally struct {
	before group.Counters // of earlier machines
	now    *group.Machine
	loads  LoadTimes
}

// begin takes over what the machine before has counted.
func (t *tally) begin(m *group.Machine) {
	if t.now != nil {
		t.before = sum(t.before, t.now.Counters())
		t.before.Quarantined = 0 // counted anew
	}
	t.now = m
}

func (t *tally) opened(took time.Duration) {
	t.loads.Count++
	t.loads.Sum += took
	t.loads.Max = max(t.loads.Max, took)
}

func sum(a, b group.Counters) group.Counters {
	return group.Counters{
		Rebalances: a.Rebalances + b.Rebalances, Evicted: a.Evicted + b.Evicted,
		OffsetCommits: a.OffsetCommits + b.OffsetCommits, OffsetsExpired: a.OffsetsExpired + b.OffsetsExpired,
		OffsetsDeleted: a.OffsetsDeleted + b.OffsetsDeleted, GroupsExpired: a.GroupsExpired + b.GroupsExpired,
		GroupsDeleted: a.GroupsDeleted + b.GroupsDeleted, Quarantined: a.Quarantined + b.Quarantined,
	}
}

// Stats looks at one shard after the other; none is opened for it.
func (n *Node) Stats() Stats {
	s := Stats{Groups: group.Census{}, Shards: len(n.shards)}
	for i, sh := range n.shards {
		t := &n.tallies[i]
		sh.Look(func(m groupMachine) {
			s.Counters = sum(s.Counters, t.before)
			if t.now != nil {
				s.Counters = sum(s.Counters, t.now.Counters())
			}
			s.Loads.Count += t.loads.Count
			s.Loads.Sum += t.loads.Sum
			s.Loads.Max = max(s.Loads.Max, t.loads.Max)
			if m != nil {
				s.Open++
				t.now.Census(s.Groups)
				s.Resident += t.now.Resident()
			}
		})
		gated, parked := sh.Waiting()
		s.Gated += gated
		s.Parked += parked
	}
	return s
}

// Opened is how many of the node's shards have been opened at least once.
func (n *Node) Opened() (opened, all int) {
	for i, sh := range n.shards {
		sh.Look(func(groupMachine) {
			if n.tallies[i].loads.Count > 0 {
				opened++
			}
		})
	}
	return opened, len(n.shards)
}

type groupMachine = machine.Machine[group.Request, groupRecord, group.Response, struct{}]
