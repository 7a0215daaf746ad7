package state

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kcoord/kcoord/storage"
)

// Groups is the hard state of the groups of a shard that are in memory.
type Groups struct {
	byID map[string]*Group
	// recent is the group of the last record: steps write many for one.
	recent *Group
	open   map[int64]*producer
}

// Group is the hard state of one group. A group without classic generation,
// offsets, pending offsets, other records or problems does not exist.
type Group struct {
	id        string
	classic   *Classic
	classicAt storage.Offset
	offsets   map[string]*topic         // under keys of version 1
	recent    *topic                    // the one looked for last, of offsets
	count     int                       // of offsets
	text      int                       // bytes of their metadata
	legacy    map[TopicPartition]Offset // of OffsetCommitKey v0: read, never written
	other     map[string]Record         // by key
	problems  map[slot]Record           // unreadable
	last      storage.Offset

	pending      map[int64]pending // by producer id; none is empty
	pendingCount int
	pendingBad   int // unreadable ones
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// NewGroups returns a shard's groups, none in memory.
func NewGroups() *Groups { return &Groups{byID: map[string]*Group{}, open: map[int64]*producer{}} }

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
func (s *Groups) Forget(id string) {
	if g := s.byID[id]; g != nil {
		for producer := range g.pending {
			s.close(g, producer)
		}
	}
	s.drop(id)
}

// Apply makes a record part of the state. Records of one key come in the order
// of their offsets, but for pending ones, which may come after the later record that counts.
// It returns what the record's group has become; nil: it is no more, or the record is of none.
func (s *Groups) Apply(offset storage.Offset, rec *Record) *Group {
	switch rec.Kind {
	case KindMarker:
		s.resolve(offset, rec)
		return nil
	case KindOrphan:
		return nil
	}
	g := s.recent
	if g == nil || g.id != rec.Group {
		if g = s.byID[rec.Group]; g == nil {
			g = &Group{id: rec.Group, last: -1}
			s.byID[rec.Group] = g
		}
		s.recent = g
	}
	g.last = max(g.last, offset)
	switch {
	case rec.Tombstone: // in a transaction, too
		g.put(offset, rec)
		if len(g.pending) > 0 {
			s.bury(g, rec.slot())
		}
	case rec.Txn.Kind == storage.Pending:
		s.pend(g, offset, rec)
	default:
		g.put(offset, rec)
	}
	if !g.exists() {
		s.drop(rec.Group)
		return nil
	}
	return g
}

func (s *Groups) drop(id string) {
	delete(s.byID, id)
	s.recent = nil
}

// put makes a record the one that counts of its key. What is kept of it is no part of
// a transaction any more.
func (g *Group) put(offset storage.Offset, rec *Record) {
	if len(g.problems) > 0 {
		delete(g.problems, rec.slot())
	}
	switch rec.Kind {
	case KindOffset:
		g.putOffset(offset, rec)
	case KindGroup:
		g.classic, g.classicAt = rec.Classic, offset
		if rec.Tombstone {
			g.classic = nil
		}
	case KindOther:
		g.putOther(offset, rec)
	case KindUnreadable:
		g.putUnreadable(offset, rec)
	default:
		panic(fmt.Sprintf("group %q, offset %d: record of unknown kind %d", rec.Group, offset, rec.Kind))
	}
}

// stored is the record as it is kept of what was applied at an offset.
func (r *Record) stored(offset storage.Offset) Record {
	out := *r
	out.Offset.At, out.Txn = offset, storage.Txn{}
	return out
}

func (g *Group) putOther(offset storage.Offset, rec *Record) {
	if rec.Tombstone {
		delete(g.other, string(rec.Key))
		return
	}
	if g.other == nil {
		g.other = map[string]Record{}
	}
	g.other[string(rec.Key)] = rec.stored(offset)
}

// putUnreadable supersedes what could be read.
func (g *Group) putUnreadable(offset storage.Offset, rec *Record) {
	at := rec.slot()
	switch at.kind {
	case KindOffset:
		g.putOffset(offset, &Record{Topic: at.topic, Partition: at.partition, LegacyKey: at.legacy, Tombstone: true})
	case KindGroup:
		g.classic = nil
	default:
		delete(g.other, at.key)
	}
	if rec.Tombstone {
		return
	}
	if g.problems == nil {
		g.problems = map[slot]Record{}
	}
	g.problems[at] = rec.stored(offset)
}

func (g *Group) putOffset(offset storage.Offset, rec *Record) {
	if rec.LegacyKey {
		tp := TopicPartition{rec.Topic, rec.Partition}
		if rec.Tombstone {
			delete(g.legacy, tp)
			return
		}
		if g.legacy == nil {
			g.legacy = map[TopicPartition]Offset{}
		}
		o := rec.Offset
		o.At = offset
		g.legacy[tp] = o
		return
	}
	if rec.Tombstone {
		g.dropCurrent(rec.Topic, rec.Partition)
	} else {
		g.putCurrent(offset, rec.Topic, rec.Partition, &rec.Offset)
	}
}

func (g *Group) exists() bool {
	return g.classic != nil || g.count > 0 || len(g.legacy) > 0 || len(g.other) > 0 || len(g.problems) > 0 || len(g.pending) > 0
}

// ID is the group's id.
func (g *Group) ID() string { return g.id }

// Classic is the last written generation, or nil. It must not be changed.
func (g *Group) Classic() *Classic { return g.classic }

// EachPartition visits the partitions that have an offset, be it a pending one, by
// topic and partition.
func (g *Group) EachPartition(visit func(topic string, partition int32)) {
	all := map[TopicPartition]struct{}{}
	g.EachOffset(func(topic string, partition int32, _ Offset) { all[TopicPartition{topic, partition}] = struct{}{} })
	for _, p := range g.pending {
		for at := range p {
			if at.kind == KindOffset {
				all[TopicPartition{at.topic, at.partition}] = struct{}{}
			}
		}
	}
	for _, tp := range slices.SortedFunc(maps.Keys(all), compare) {
		visit(tp.Topic, tp.Partition)
	}
}

func compare(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// HasLegacy says whether a partition has an offset, be it a pending one, under a
// key of version 0, which a deletion must delete too.
func (g *Group) HasLegacy(topic string, partition int32) bool {
	_, has := g.legacy[TopicPartition{topic, partition}]
	return has || g.hasPending(slot{kind: KindOffset, topic: topic, partition: partition, legacy: true})
}

// HasCurrent says whether a partition has an offset, be it a pending one, under a key of version 1.
func (g *Group) HasCurrent(topic string, partition int32) bool {
	has := g.current(topic, partition) != nil
	return has || g.hasPending(slot{kind: KindOffset, topic: topic, partition: partition})
}

// Others visits the records of other types by key.
func (g *Group) Others(visit func(Record)) {
	for _, k := range slices.Sorted(maps.Keys(g.other)) {
		visit(g.other[k])
	}
}

// Problems visits the unreadable records by key, then the pending ones. A group that has any is in
// quarantine.
func (g *Group) Problems(visit func(Record)) {
	recs := slices.Collect(maps.Values(g.problems))
	slices.SortFunc(recs, func(a, b Record) int { return bytes.Compare(a.Key, b.Key) })
	for _, r := range recs {
		visit(r)
	}
	g.EachPending(func(r Record) {
		if r.Kind == KindUnreadable {
			visit(r)
		}
	})
}

// Quarantined says whether the group has an unreadable record, be it a pending one.
func (g *Group) Quarantined() bool { return len(g.problems) > 0 || g.pendingBad > 0 }

// Last is the offset of the newest record of the group that was applied.
func (g *Group) Last() storage.Offset { return g.last }
