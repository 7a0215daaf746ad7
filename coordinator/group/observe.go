package group

import "github.com/twmb/franz-go/pkg/kmsg"

// Observe is Describe with what Kafka's message has no place for. It is answered by an Observed.
type Observe struct{ Group string }

// Observed is a group as it is.
type Observed struct {
	*kmsg.DescribeGroupsResponseGroup
	Generation int32 // -1: there is no such group
}

// Entity is part of Request.
func (r Observe) Entity() (string, bool) { return r.Group, true }

func (m *Machine) observe(e *entry) Observed {
	o := Observed{m.describe(e), -1}
	if e.live != nil {
		o.Generation = e.live.generation
	}
	return o
}

// Glimpse tells two moments of a group apart: where it is the same, neither state nor
// members have changed between them. It costs next to nothing, and says nothing of
// what is durable.
type Glimpse struct {
	live    *liveGroup
	changes uint64
}

// Glimpse looks at a group between two steps.
func (m *Machine) Glimpse(id string) Glimpse {
	if e := m.dir[id]; e != nil && e.live != nil {
		return Glimpse{e.live, e.live.changes}
	}
	return Glimpse{}
}

// Census counts groups by kind and state.
type Census map[Kind]int

// Kind is a group's kind and state, by the names that Kafka's clients know.
type Kind struct{ Protocol, State string }

// Census adds the groups of the shard, in memory or not. It looks at each, so it
// is for now and then.
func (m *Machine) Census(c Census) {
	const unknown = len(stateNames)
	var n [len(kindNames)][len(stateNames) + 1]int
	for _, e := range m.dir {
		switch {
		case e.quarantined, e.live == nil && e.stored && e.kind != kindClassic: // its members are not known
			n[e.kind][unknown]++
		case e.live != nil:
			n[e.kind][e.live.state]++
		case e.stored:
			n[e.kind][stateEmpty]++
		}
	}
	for k, states := range n {
		for s, count := range states {
			if count == 0 {
				continue
			}
			name := stateUnknown
			if s < unknown {
				name = stateNames[s]
			}
			c[Kind{kindNames[k], name}] += count
		}
	}
}

// Resident is about how many offsets and groups are in memory.
func (m *Machine) Resident() int { return m.resident }
