package group

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
)

// consumerProtocol is the protocol type whose subscriptions are understood.
const consumerProtocol = "consumer"

// liveGroup is the soft state of a classic group that is in memory: what a
// failover loses but for its last written generation.
type liveGroup struct {
	id              string
	state, previous groupState
	since           time.Time // when it got into its state; zero: not known
	changes         uint64    // of its state and members, for Machine.Glimpse
	protocolType    string    // "": none yet, a group that only keeps offsets
	generation      int32
	protocol        *string // nil: none chosen
	leader          *member // nil: none

	members  map[string]*member
	order    []*member          // by id
	statics  map[string]*member // by instance id (KIP-345)
	pending  map[string]*member // told their id, not yet joined (KIP-394)
	joining  int                // members with a parked join
	unsynced int                // members that have not synced in this generation
	support  map[string]int     // protocol → members that know it

	topics      map[string]struct{} // that members subscribe to
	topicsKnown bool

	// Of the first rebalance of an empty group: the delay that runs, what may come after
	// it, and whether a member came during it.
	delay, left time.Duration
	more        bool

	join, sync timer
}

// member is a member of a live group, or a pending one.
type member struct {
	id               string
	instance         *string
	clientID         string
	clientHost       string
	rebalanceTimeout time.Duration
	sessionTimeout   time.Duration
	protocols        []protocol // in the order of preference
	assignment       []byte
	// fresh: parked in its first join, in which it can send no heartbeats.
	fresh bool
	// joins and syncs are parked requests. A client that gave up on a request and sent
	// it again has several: they get the same answer.
	joins, syncs []machine.Token
	unsynced     bool // has not synced in this generation
	session      timer
}

type protocol struct {
	name     string
	metadata []byte
	tags     string // fields that nobody here knows: other ones are news, as in Kafka
}

func newLiveGroup(e *entry, now time.Time) *liveGroup {
	g := &liveGroup{id: e.id, state: stateEmpty, previous: stateDead, since: now}
	g.join.entry, g.sync.entry, g.sync.kind = e, e, timerSync
	return g
}

// loadedGroup is the live group of a written generation: at rest, since a
// rebalance that was under way is lost.
func loadedGroup(e *entry, c *state.Classic) *liveGroup {
	g := newLiveGroup(e, c.Since)
	g.protocolType, g.generation, g.protocol = c.ProtocolType, c.Generation, c.Protocol
	var name string
	if c.Protocol != nil {
		name = *c.Protocol
	}
	for _, w := range c.Members {
		if g.members[w.ID] != nil {
			continue
		}
		g.add(&member{
			id: w.ID, instance: w.InstanceID, clientID: w.ClientID, clientHost: w.ClientHost,
			rebalanceTimeout: w.RebalanceTimeout, sessionTimeout: w.SessionTimeout,
			protocols: []protocol{{name: name, metadata: w.Subscription}}, assignment: w.Assignment,
		})
		if c.Leader != nil && w.ID == *c.Leader {
			g.leader = g.members[w.ID]
		}
	}
	if len(g.order) > 0 {
		g.state = stateStable
	}
	g.learnTopics()
	return g
}

// idle says that nobody is in the group or on the way into it.
func (g *liveGroup) idle() bool { return g.state == stateEmpty && len(g.pending) == 0 }

// add takes a member in.
func (g *liveGroup) add(m *member) {
	if g.members == nil {
		g.members, g.support = map[string]*member{}, map[string]int{}
	}
	if g.leader == nil {
		g.leader = m
	}
	g.put(m)
	g.count(m, 1)
	if len(m.joins) > 0 {
		g.joining++
	}
}

// put files a member under its ids.
func (g *liveGroup) put(m *member) {
	g.changes++
	g.members[m.id] = m
	i, had := g.find(m.id)
	if had {
		g.order[i] = m
	} else {
		g.order = slices.Insert(g.order, i, m)
	}
	if m.instance != nil {
		if g.statics == nil {
			g.statics = map[string]*member{}
		}
		g.statics[*m.instance] = m
	}
}

// remove takes a member out; nothing is parked for it any more.
func (g *liveGroup) remove(m *member) {
	g.changes++
	delete(g.members, m.id)
	if i, had := g.find(m.id); had {
		g.order = slices.Delete(g.order, i, i+1)
	}
	if m.instance != nil {
		delete(g.statics, *m.instance)
	}
	g.count(m, -1)
	if m.unsynced {
		m.unsynced = false
		g.unsynced--
	}
	if g.leader == m {
		g.leader = nil
		if len(g.order) > 0 {
			g.leader = g.order[0]
		}
	}
}

func (g *liveGroup) find(id string) (int, bool) {
	return slices.BinarySearchFunc(g.order, id, func(m *member, id string) int { return cmp.Compare(m.id, id) })
}

func (g *liveGroup) count(m *member, by int) {
	for _, p := range m.protocols {
		if g.support[p.name] += by; g.support[p.name] == 0 {
			delete(g.support, p.name)
		}
	}
}

// check says whether a member may speak, by member id and, if given, by
// instance id, in Kafka's order: who took over an instance id fences.
func (g *liveGroup) check(id string, instance *string) (*member, int16) {
	if instance != nil {
		switch s := g.statics[*instance]; {
		case s == nil:
			return nil, unknownMemberID
		case s.id != id:
			return nil, fencedInstanceID
		}
	}
	if m := g.members[id]; m != nil {
		return m, none
	}
	return nil, unknownMemberID
}

// rebalanceTimeout is the longest of the members'.
func (g *liveGroup) rebalanceTimeout() time.Duration {
	var most time.Duration
	for _, m := range g.order {
		most = max(most, m.rebalanceTimeout)
	}
	return most
}

// allJoined says that nobody is missing from the join phase.
func (g *liveGroup) allJoined() bool { return g.joining == len(g.order) && len(g.pending) == 0 }

// supports says whether someone who knows these protocols can be a member.
func (g *liveGroup) supports(protocolType string, ps []protocol) bool {
	if g.state == stateEmpty {
		return protocolType != "" && len(ps) > 0
	}
	if protocolType != g.protocolType {
		return false
	}
	for _, p := range ps {
		if g.support[p.name] == len(g.order) {
			return true
		}
	}
	return false
}

// vote chooses the protocol of the next generation: each member votes for the
// first it lists among those that all know. Of equals it takes the one that
// Kafka takes, the first in a Java HashMap.
func (g *liveGroup) vote() string {
	votes := map[string]int{}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if g.support[p.name] == len(g.order) {
				votes[p.name]++
				break
			}
		}
	}
	buckets := uint32(16)
	for 4*len(votes) > 3*int(buckets) {
		buckets *= 2
	}
	var best string
	most := 0
	for name, n := range votes {
		if c := cmp.Or(cmp.Compare(n, most), cmp.Compare(bucket(best, buckets), bucket(name, buckets)), cmp.Compare(best, name)); c > 0 {
			best, most = name, n
		}
	}
	return best
}

// bucket is where a Java HashMap puts a string.
func bucket(s string, buckets uint32) uint32 {
	var h uint32
	for _, r := range s {
		if r >= 0x10000 {
			hi, lo := utf16.EncodeRune(r)
			h = 31*h + uint32(hi)
			r = lo
		}
		h = 31*h + uint32(r)
	}
	return (h ^ h>>16) & (buckets - 1)
}

// leaderID is the leader's member id, or "".
func (g *liveGroup) leaderID() string {
	if g.leader == nil {
		return ""
	}
	return g.leader.id
}

func (m *member) metadata(protocol *string) []byte {
	if protocol != nil {
		for _, p := range m.protocols {
			if p.name == *protocol {
				return p.metadata
			}
		}
	}
	return nil
}

// record is the group as it is, to be written.
func (g *liveGroup) record() state.Record {
	c := &state.Classic{ProtocolType: g.protocolType, Generation: g.generation, Protocol: g.protocol, Since: g.since}
	if id := g.leaderID(); id != "" {
		c.Leader = &id
	}
	if len(g.order) > 0 {
		c.Members = make([]state.Member, len(g.order))
	}
	for i, m := range g.order {
		c.Members[i] = state.Member{
			ID: m.id, InstanceID: m.instance, ClientID: m.clientID, ClientHost: m.clientHost,
			RebalanceTimeout: m.rebalanceTimeout, SessionTimeout: m.sessionTimeout,
			Subscription: m.metadata(g.protocol), Assignment: m.assignment,
		}
	}
	return state.Record{Kind: state.KindGroup, Group: g.id, Classic: c}
}
