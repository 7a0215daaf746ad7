package group

import (
	"fmt"
	"slices"
	"time"
)

// groupState is the state of a live classic group.
type groupState uint8

const (
	// stateEmpty: no members; the group lasts until its offsets have expired.
	stateEmpty groupState = iota
	// statePreparing: joins are parked until all members that are known have joined.
	statePreparing
	// stateCompleting: syncs are parked until the leader has assigned.
	stateCompleting
	// stateStable: every member may fetch its assignment.
	stateStable
	// stateDead: deleted. Nothing leads out of it.
	stateDead
)

// stateNames are the names that Kafka's clients know.
var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// stateBefore holds, for each state, the states that a group may come from.
var stateBefore = [...][]groupState{
	stateEmpty:      {statePreparing},
	statePreparing:  {stateStable, stateCompleting, stateEmpty},
	stateCompleting: {statePreparing},
	stateStable:     {stateCompleting},
	stateDead:       {stateStable, statePreparing, stateCompleting, stateEmpty, stateDead},
}

func (s groupState) String() string { return stateNames[s] }

// to moves the group on.
func (g *liveGroup) to(s groupState, now time.Time) {
	if !slices.Contains(stateBefore[s], g.state) {
		panic(fmt.Sprintf("group %q: from %v to %v", g.id, g.state, s))
	}
	g.previous, g.state, g.since = g.state, s, now
	g.changes++
}

// canRebalance says whether a rebalance may begin.
func (g *liveGroup) canRebalance() bool { return slices.Contains(stateBefore[statePreparing], g.state) }
