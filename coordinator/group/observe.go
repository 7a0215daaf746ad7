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
	for _, e := range m.dir {
		k := Kind{kindNames[e.kind], stateEmpty.String()}
		switch {
		case e.quarantined:
			k.State = stateUnknown
		case e.live != nil:
			k.State = e.live.state.String()
		case !e.stored:
			continue
		case e.kind != kindClassic:
			k.State = stateUnknown // its members are not known
		}
		c[k]++
	}
}

// Resident is about how many offsets and groups are in memory.
func (m *Machine) Resident() int { return m.resident }
