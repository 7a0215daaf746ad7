package state

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kcoord/kcoord/storage"
)

// Groups is the hard state of the groups of a shard that are in memory.
type Groups struct {
	byID map[string]*Group
}

// Group is the hard state of one group. A group without classic generation,
// offsets, other records or problems does not exist.
type Group struct {
	id       string
	classic  *Classic
	offsets  map[string]map[int32]Offset
	count    int                       // of offsets
	legacy   map[TopicPartition]Offset // of OffsetCommitKey v0: read, never written
	other    map[string]Record         // by key
	problems map[string]Record         // by key: unreadable
	last     storage.Offset
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// NewGroups returns a shard's groups, none in memory.
func NewGroups() *Groups { return &Groups{byID: map[string]*Group{}} }

// Group returns a group, or nil when no record of it is in memory.
func (s *Groups) Group(id string) *Group { return s.byID[id] }

// Len is the number of groups in memory.
func (s *Groups) Len() int { return len(s.byID) }

// All visits the groups in memory by id.
func (s *Groups) All(visit func(*Group)) {
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		visit(s.byID[id])
	}
}

// Forget drops a group from memory. Its records stay where they are stored.
func (s *Groups) Forget(id string) { delete(s.byID, id) }

// Apply makes a record part of the state. Records of one key come in the order
// of their offsets.
func (s *Groups) Apply(offset storage.Offset, rec Record) {
	g := s.byID[rec.Group]
	if g == nil {
		g = &Group{id: rec.Group, last: -1}
		s.byID[rec.Group] = g
	}
	g.last = max(g.last, offset)
	switch rec.Kind {
	case KindOffset:
		g.applyOffset(offset, rec)
	case KindGroup:
		g.classic = rec.Classic
		if rec.Tombstone {
			g.classic = nil
		}
	case KindOther:
		put(&g.other, rec)
	case KindUnreadable:
		put(&g.problems, rec)
	default:
		panic(fmt.Sprintf("group %q, offset %d: record of unknown kind %d", rec.Group, offset, rec.Kind))
	}
	if !g.exists() {
		delete(s.byID, rec.Group)
	}
}

func put(m *map[string]Record, rec Record) {
	if *m == nil {
		*m = map[string]Record{}
	}
	if rec.Tombstone {
		delete(*m, string(rec.Key))
	} else {
		(*m)[string(rec.Key)] = rec
	}
}

func (g *Group) applyOffset(offset storage.Offset, rec Record) {
	rec.Offset.At = offset
	if rec.LegacyKey {
		tp := TopicPartition{rec.Topic, rec.Partition}
		if rec.Tombstone {
			delete(g.legacy, tp)
			return
		}
		if g.legacy == nil {
			g.legacy = map[TopicPartition]Offset{}
		}
		g.legacy[tp] = rec.Offset
		return
	}
	parts := g.offsets[rec.Topic]
	_, had := parts[rec.Partition]
	if rec.Tombstone {
		if had {
			g.count--
			delete(parts, rec.Partition)
			if len(parts) == 0 {
				delete(g.offsets, rec.Topic)
			}
		}
		return
	}
	if g.offsets == nil {
		g.offsets = map[string]map[int32]Offset{}
	}
	if parts == nil {
		parts = map[int32]Offset{}
		g.offsets[rec.Topic] = parts
	}
	if !had {
		g.count++
	}
	parts[rec.Partition] = rec.Offset
}

func (g *Group) exists() bool {
	return g.classic != nil || g.count > 0 || len(g.legacy) > 0 || len(g.other) > 0 || len(g.problems) > 0
}

// ID is the group's id.
func (g *Group) ID() string { return g.id }

// Classic is the last written generation, or nil. It must not be changed.
func (g *Group) Classic() *Classic { return g.classic }

// Offset returns a committed offset. Where a partition has offsets under keys of
// both versions, the later record counts.
func (g *Group) Offset(topic string, partition int32) (Offset, bool) {
	o, ok := g.offsets[topic][partition]
	if len(g.legacy) > 0 {
		if l, has := g.legacy[TopicPartition{topic, partition}]; has && (!ok || l.At > o.At) {
			return l, true
		}
	}
	return o, ok
}

// Offsets is the number of committed offsets.
func (g *Group) Offsets() int { return g.count + len(g.legacy) }

// EachOffset visits the committed offsets by topic and partition.
func (g *Group) EachOffset(visit func(topic string, partition int32, o Offset)) {
	tps := make([]TopicPartition, 0, g.Offsets())
	for t, parts := range g.offsets {
		for p := range parts {
			tps = append(tps, TopicPartition{t, p})
		}
	}
	for tp := range g.legacy {
		if _, both := g.offsets[tp.Topic][tp.Partition]; !both {
			tps = append(tps, tp)
		}
	}
	slices.SortFunc(tps, func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	for _, tp := range tps {
		o, _ := g.Offset(tp.Topic, tp.Partition)
		visit(tp.Topic, tp.Partition, o)
	}
}

// HasLegacy says whether a partition has an offset under a key of version 0,
// which a deletion must delete too.
func (g *Group) HasLegacy(topic string, partition int32) bool {
	_, has := g.legacy[TopicPartition{topic, partition}]
	return has
}

// HasCurrent says whether a partition has an offset under a key of version 1.
func (g *Group) HasCurrent(topic string, partition int32) bool {
	_, has := g.offsets[topic][partition]
	return has
}

// Others visits the records of other types by key.
func (g *Group) Others(visit func(Record)) { each(g.other, visit) }

// Problems visits the unreadable records by key. A group that has any is in
// quarantine.
func (g *Group) Problems(visit func(Record)) { each(g.problems, visit) }

// Quarantined says whether the group has an unreadable record.
func (g *Group) Quarantined() bool { return len(g.problems) > 0 }

// Last is the offset of the newest record of the group that was applied.
func (g *Group) Last() storage.Offset { return g.last }

func each(m map[string]Record, visit func(Record)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		visit(m[k])
	}
}

// Dump writes the state in words, the same for the same state.
func (s *Groups) Dump(w io.Writer) { s.All(func(g *Group) { g.Dump(w) }) }

// Dump writes a group's state in words, the same for the same state.
func (g *Group) Dump(w io.Writer) {
	fmt.Fprintf(w, "group %q\n", g.id)
	if c := g.classic; c != nil {
		fmt.Fprintf(w, "  classic type=%q generation=%d protocol=%s leader=%s since=%d\n",
			c.ProtocolType, c.Generation, orNull(c.Protocol), orNull(c.Leader), c.Since.UnixMilli())
		for _, m := range c.Members {
			fmt.Fprintf(w, "    member %q instance=%s client=%q host=%q rebalance=%s session=%s subscription=%q assignment=%q\n",
				m.ID, orNull(m.InstanceID), m.ClientID, m.ClientHost, m.RebalanceTimeout, m.SessionTimeout, m.Subscription, m.Assignment)
		}
	}
	g.EachOffset(func(topic string, partition int32, o Offset) {
		fmt.Fprintf(w, "  offset %s-%d=%d epoch=%d metadata=%q committed=%d expires=%d id=%x at=%d\n", topic, partition,
			o.Offset, o.LeaderEpoch, o.Metadata, o.Committed.UnixMilli(), o.Expires.UnixMilli(), o.TopicID, o.At)
	})
	g.Others(func(r Record) { fmt.Fprintf(w, "  other %x=%x\n", r.Key, r.Value) })
	g.Problems(func(r Record) { fmt.Fprintf(w, "  unreadable %x=%x: %v\n", r.Key, r.Value, r.Problem) })
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}
