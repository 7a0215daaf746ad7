package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// stateUnknown is what List says of a group in quarantine. It is a name that
// Kafka's clients have for a state, though no classic group's.
const stateUnknown = "Unknown"

// Mistaken tells of a name in the filters that no group ever has for its state or type, and
// which there are. Such a filter lets nothing pass, which looks as if there were no groups.
func (r List) Mistaken() error {
	states := append(slices.Clone(stateNames[:]), stateUnknown)
	return cmp.Or(mistaken(r.States, "states", states, trimmed), mistaken(r.Types, "types", kindNames[:], asItIs))
}

func mistaken(filter []string, what string, names []string, trim func(string) string) error {
	for i, f := range filter {
		if !slices.ContainsFunc(names, func(name string) bool { return passes(filter[i:i+1], name, trim) }) {
			return fmt.Errorf("no group is ever %q: the %s are %s", f, what, strings.Join(names, ", "))
		}
	}
	return nil
}

// list tells of all groups of the shard, by id, in memory or not. Of what is
// not in memory nobody is a member.
func (m *Machine) list(r List) []kmsg.ListGroupsResponseGroup {
	out := []kmsg.ListGroupsResponseGroup{}
	for _, id := range m.sorted() {
		e := m.dir[id]
		l := kmsg.ListGroupsResponseGroup{Group: id, ProtocolType: e.protocolType, GroupState: stateEmpty.String(), GroupType: kindNames[e.kind]}
		switch {
		case e.quarantined:
			l.GroupState = stateUnknown
		case e.live != nil:
			l.ProtocolType, l.GroupState = e.live.protocolType, e.live.state.String()
		case !e.stored:
			continue
		}
		if passes(r.States, l.GroupState, trimmed) && passes(r.Types, l.GroupType, asItIs) {
			out = append(out, l)
		}
	}
	return out
}

// Kafka trims the names of states, as Java does, and not those of types.
func trimmed(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return r <= ' ' })
}

func asItIs(name string) string { return name }

// passes says whether one of a filter's names is this, in whatever case: of letters
// that are no ASCII, Java's lower case is never one of a name's.
func passes(filter []string, name string, trim func(string) string) bool {
	for _, f := range filter {
		if f = trim(f); len(f) == len(name) && strings.EqualFold(f, name) {
			return true
		}
	}
	return len(filter) == 0
}

// ids are the ids of all groups of the shard.
func (m *Machine) ids() []string {
	out := []string{}
	for _, id := range m.sorted() {
		if e := m.dir[id]; e.stored || e.live != nil {
			out = append(out, id)
		}
	}
	return out
}
