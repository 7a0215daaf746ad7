package state

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/storage"
)

// Txns is the hard state of the transactional ids of a shard that are in memory.
type Txns struct {
	byID map[string]entity
}

// entity is the latest record of an id, which is all there is of it.
type entity struct {
	record Record
	at     storage.Offset
}

// NewTxns returns a shard's transactional ids, none in memory.
func NewTxns() *Txns { return &Txns{byID: map[string]entity{}} }

// Txn returns an id's transaction, or nil when there is none in memory that can be read.
func (s *Txns) Txn(id string) *Txn { return s.byID[id].record.Txn }

// Problem returns the record for which an id is in quarantine, if it is.
func (s *Txns) Problem(id string) (Record, bool) {
	e, has := s.byID[id]
	return e.record, has && e.record.Kind == KindUnreadable
}

// At is the offset of an id's record.
func (s *Txns) At(id string) (at storage.Offset, has bool) {
	e, has := s.byID[id]
	return e.at, has
}

// Forget drops an id from memory. Its record stays where it is stored.
func (s *Txns) Forget(id string) { delete(s.byID, id) }

// Apply makes a record part of the state. Of an id's records the latest counts.
func (s *Txns) Apply(offset storage.Offset, rec *Record) {
	if rec.Kind == KindOther {
		return
	}
	if e, has := s.byID[rec.ID]; has && e.at > offset {
		return
	}
	if rec.Tombstone {
		delete(s.byID, rec.ID)
		return
	}
	s.byID[rec.ID] = entity{*rec, offset}
}

// Dump writes the state in words, the same for the same state.
func (s *Txns) Dump(w io.Writer) {
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		e := s.byID[id]
		if t := e.record.Txn; t != nil {
			fmt.Fprintf(w, "txn %q at=%d %v\n", id, e.at, t)
		} else {
			fmt.Fprintf(w, "txn %q at=%d unreadable %x=%x: %v\n", id, e.at, e.record.Key, e.record.Value, e.record.Problem)
		}
	}
}

func (t *Txn) String() string {
	s := fmt.Sprintf("%v %v previous=%d next=%d/%d version=%d timeout=%v started=%d updated=%d", t.Status, t.Producer, t.Previous, t.Next, t.NextEpoch,
		t.Version, t.Timeout, recordbin.Millis(t.Started), recordbin.Millis(t.Updated))
	for _, topic := range t.Topics {
		s += fmt.Sprintf(" %s%v", topic.Name, topic.Partitions)
	}
	if t.Tags != "" {
		s += fmt.Sprintf(" tags=%x", string(t.Tags))
	}
	return s
}
