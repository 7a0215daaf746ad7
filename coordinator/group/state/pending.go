package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/storage"
)

// slot is what a record's key names: who is later in a slot supersedes who was earlier.
type slot struct {
	kind Kind

	// Of KindOffset.
	topic     string
	partition int32
	legacy    bool

	// Of KindOther: the key.
	key string
}

// slot is where the record goes. An unreadable one goes where it would if it
// were not, as far as its key can be read.
func (r *Record) slot() slot {
	switch r.Kind {
	case KindOffset:
		return slot{kind: KindOffset, topic: r.Topic, partition: r.Partition, legacy: r.LegacyKey}
	case KindGroup:
		return slot{kind: KindGroup}
	case KindUnreadable:
		return slotOf(r.Key)
	}
	return slot{kind: KindOther, key: string(r.Key)}
}

func slotOf(key []byte) slot {
	if _, t, err := groupmeta.GroupOfKey(key); err == nil {
		switch t {
		case groupmeta.TypeOffsetCommit:
			var k groupmeta.OffsetCommitKey
			if k.Decode(key) == nil {
				return slot{kind: KindOffset, topic: k.Topic, partition: k.Partition}
			}
		case groupmeta.TypeLegacyOffsetCommit:
			var k groupmeta.LegacyOffsetCommitKey
			if k.Decode(key) == nil {
				return slot{kind: KindOffset, topic: k.Topic, partition: k.Partition, legacy: true}
			}
		case groupmeta.TypeGroupMetadata:
			return slot{kind: KindGroup}
		}
	}
	return slot{kind: KindOther, key: string(key)}
}

// pending are a producer's pending records in one group.
type pending map[slot]Record

// producer is one that has pending records in the shard.
type producer struct {
	epoch  int16 // the highest seen
	groups map[string]struct{}
}

// pend takes in a record of a transaction.
func (s *Groups) pend(g *Group, offset storage.Offset, rec *Record) {
	id, at := rec.Txn.Producer, rec.slot()
	if g.pending[id] == nil {
		if g.pending == nil {
			g.pending = map[int64]pending{}
		}
		g.pending[id] = pending{}
		p := s.open[id]
		if p == nil {
			p = &producer{groups: map[string]struct{}{}}
			s.open[id] = p
		}
		p.groups[g.id] = struct{}{}
	}
	s.open[id].epoch = max(s.open[id].epoch, rec.Txn.Epoch)
	g.countPending(g.pending[id][at], -1)
	kept := *rec
	kept.Offset.At = offset
	g.pending[id][at] = kept
	g.countPending(kept, 1)
}

// countPending keeps the numbers of pending records; of a record that is none it counts nothing.
func (g *Group) countPending(rec Record, by int) {
	if rec.Txn.Kind != storage.Pending {
		return
	}
	g.pendingCount += by
	if rec.Kind == KindUnreadable {
		g.pendingBad += by
	}
}

// bury ends what is pending in a slot, whoever's it is.
func (s *Groups) bury(g *Group, at slot) {
	for id, p := range g.pending {
		if rec, has := p[at]; has {
			g.countPending(rec, -1)
			if delete(p, at); len(p) == 0 {
				s.close(g, id)
			}
		}
	}
}

// close ends a producer's transaction in a group.
func (s *Groups) close(g *Group, id int64) {
	delete(g.pending, id)
	if delete(s.open[id].groups, g.id); len(s.open[id].groups) == 0 {
		delete(s.open, id)
	}
}

// resolve ends a producer's transaction in all groups: by a commit its records
// count, but where a later record does.
func (s *Groups) resolve(offset storage.Offset, marker *Record) {
	id := marker.Txn.Producer
	for _, name := range s.Open(id) {
		g := s.byID[name]
		g.last = max(g.last, offset)
		for at, rec := range g.pending[id] {
			g.countPending(rec, -1)
			if marker.Txn.Kind == storage.Commit && rec.Offset.At > g.at(at) {
				g.put(rec.Offset.At, &rec)
			}
		}
		s.close(g, id)
		if !g.exists() {
			s.drop(name)
		}
	}
}

// at is the offset of the record that counts in a slot; -1: none does.
func (g *Group) at(at slot) storage.Offset {
	if rec, bad := g.problems[at]; bad {
		return rec.Offset.At
	}
	switch at.kind {
	case KindOffset:
		if at.legacy {
			if o, has := g.legacy[TopicPartition{at.topic, at.partition}]; has {
				return o.At
			}
		} else if k := g.current(at.topic, at.partition); k != nil {
			return k.at
		}
	case KindGroup:
		if g.classic != nil {
			return g.classicAt
		}
	default:
		if rec, has := g.other[at.key]; has {
			return rec.Offset.At
		}
	}
	return -1
}

// Open are the ids of the groups in which a producer has pending records.
func (s *Groups) Open(producerID int64) []string {
	p := s.open[producerID]
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.groups))
}

// Epoch is the highest epoch of a producer's that its pending records were of; -1: it has none.
func (s *Groups) Epoch(producerID int64) int16 {
	if p := s.open[producerID]; p != nil {
		return p.epoch
	}
	return -1
}

// Pending is the number of pending records in the group.
func (g *Group) Pending() int { return g.pendingCount }

// HasPending says whether a partition has a pending offset, under a key of whichever version.
func (g *Group) HasPending(topic string, partition int32) bool {
	if len(g.pending) == 0 {
		return false
	}
	at := slot{kind: KindOffset, topic: topic, partition: partition}
	if g.hasPending(at) {
		return true
	}
	at.legacy = true
	return g.hasPending(at)
}

func (g *Group) hasPending(at slot) bool {
	for _, p := range g.pending {
		if _, has := p[at]; has {
			return true
		}
	}
	return false
}

// EachPending visits the pending records by producer and, of each, by offset.
func (g *Group) EachPending(visit func(Record)) {
	for _, id := range slices.Sorted(maps.Keys(g.pending)) {
		recs := slices.Collect(maps.Values(g.pending[id]))
		slices.SortFunc(recs, func(a, b Record) int { return cmp.Compare(a.Offset.At, b.Offset.At) })
		for _, r := range recs {
			visit(r)
		}
	}
}

// OpenTransaction is a producer's transaction in one group.
type OpenTransaction struct {
	Producer int64
	Epoch    int16 // of its latest record
	Offsets  int
	// First and Last are the offsets of the first and the last of its records that count.
	First, Last storage.Offset
}

// Transactions are the group's open transactions by producer.
func (g *Group) Transactions() []OpenTransaction {
	var all []OpenTransaction
	g.EachPending(func(r Record) {
		if n := len(all); n == 0 || all[n-1].Producer != r.Txn.Producer {
			all = append(all, OpenTransaction{Producer: r.Txn.Producer, First: r.Offset.At})
		}
		t := &all[len(all)-1]
		t.Epoch, t.Last = r.Txn.Epoch, r.Offset.At
		t.Offsets++
	})
	return all
}
