package state

import (
	"cmp"
	"slices"

	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/storage"
)

// topic holds a group's committed offsets of one topic, by partition: as a rule a
// run without holes from 0, where each is found without a search.
type topic struct {
	name  string
	parts []kept
}

// kept is an Offset as it is kept in memory, of which there are many: times are
// the record's milliseconds, -1 for none.
type kept struct {
	offset      int64
	committed   int64
	expires     int64
	at          storage.Offset
	partition   int32
	leaderEpoch int32
	metadata    string
	topicID     [16]byte
}

func keep(at storage.Offset, partition int32, o *Offset) kept {
	return kept{
		offset: o.Offset, committed: recordbin.Millis(o.Committed), expires: recordbin.Millis(o.Expires), at: at,
		partition: partition, leaderEpoch: o.LeaderEpoch, metadata: o.Metadata, topicID: o.TopicID,
	}
}

func (k *kept) open() Offset {
	return Offset{
		Offset: k.offset, LeaderEpoch: k.leaderEpoch, Metadata: k.metadata,
		Committed: recordbin.Instant(k.committed), Expires: recordbin.Instant(k.expires), TopicID: k.topicID, At: k.at,
	}
}

// find is where a partition is, or would be.
func (t *topic) find(partition int32) (at int, found bool) {
	if i := int(partition); i >= 0 && i < len(t.parts) && t.parts[i].partition == partition {
		return i, true
	}
	return slices.BinarySearchFunc(t.parts, partition, func(k kept, p int32) int { return cmp.Compare(k.partition, p) })
}

// current is the committed offset of a partition under a key of version 1, or nil.
func (g *Group) current(name string, partition int32) *kept {
	if t := g.topic(name); t != nil {
		if i, found := t.find(partition); found {
			return &t.parts[i]
		}
	}
	return nil
}

// topic finds the offsets of a topic, or nil. One request is mostly about one topic.
func (g *Group) topic(name string) *topic {
	if t := g.recent; t != nil && t.name == name {
		return t
	}
	t := g.offsets[name]
	if t != nil {
		g.recent = t
	}
	return t
}

// putCurrent sets the offset of a partition.
func (g *Group) putCurrent(offset storage.Offset, name string, partition int32, o *Offset) {
	t := g.topic(name)
	if t == nil {
		if g.offsets == nil {
			g.offsets = map[string]*topic{}
		}
		t = &topic{name: name}
		g.offsets[name], g.recent = t, t
	}
	i, found := t.find(partition)
	if !found {
		t.parts = slices.Insert(t.parts, i, kept{})
		g.count++
	}
	g.text += len(o.Metadata) - len(t.parts[i].metadata)
	t.parts[i] = keep(offset, partition, o)
}

// dropCurrent deletes the offset of a partition, if it has one.
func (g *Group) dropCurrent(name string, partition int32) {
	t := g.topic(name)
	if t == nil {
		return
	}
	i, found := t.find(partition)
	if !found {
		return
	}
	g.text -= len(t.parts[i].metadata)
	t.parts = slices.Delete(t.parts, i, i+1)
	g.count--
	if len(t.parts) == 0 {
		delete(g.offsets, name)
		g.recent = nil
	}
}

// Offset returns a committed offset. Where a partition has offsets under keys of
// both versions, the later record counts.
func (g *Group) Offset(topic string, partition int32) (Offset, bool) {
	k := g.current(topic, partition)
	if len(g.legacy) > 0 {
		if l, has := g.legacy[TopicPartition{topic, partition}]; has && (k == nil || l.At > k.at) {
			return l, true
		}
	}
	if k == nil {
		return Offset{}, false
	}
	return k.open(), true
}

// Offsets is the number of committed offsets.
func (g *Group) Offsets() int { return g.count + len(g.legacy) }

// Text is how many bytes of metadata the committed offsets have.
func (g *Group) Text() int { return g.text }

// EachOffset visits the committed offsets by topic and partition.
func (g *Group) EachOffset(visit func(topic string, partition int32, o Offset)) {
	names := make([]string, 0, len(g.offsets))
	for name := range g.offsets {
		names = append(names, name)
	}
	if len(g.legacy) > 0 {
		g.eachOfBothKeys(names, visit)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		parts := g.offsets[name].parts
		for i := range parts {
			visit(name, parts[i].partition, parts[i].open())
		}
	}
}

// eachOfBothKeys is EachOffset where some offsets stand under keys of version 0.
func (g *Group) eachOfBothKeys(names []string, visit func(topic string, partition int32, o Offset)) {
	tps := make([]TopicPartition, 0, g.Offsets())
	for _, name := range names {
		parts := g.offsets[name].parts
		for i := range parts {
			tps = append(tps, TopicPartition{name, parts[i].partition})
		}
	}
	for tp := range g.legacy {
		if g.current(tp.Topic, tp.Partition) == nil {
			tps = append(tps, tp)
		}
	}
	slices.SortFunc(tps, compare)
	for _, tp := range tps {
		o, _ := g.Offset(tp.Topic, tp.Partition)
		visit(tp.Topic, tp.Partition, o)
	}
}
