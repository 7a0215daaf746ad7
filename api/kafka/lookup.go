package kafka

import (
	"context"

	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// lookup answers which of the topics and partitions of a request the broker has.
type lookup struct {
	view *upstream.Topics
	// groups is how many partitions of __consumer_offsets there are, which are here
	// whatever the broker says.
	groups int32
	byName map[string]*upstream.Topic
	byID   map[[16]byte]*upstream.Topic
	names  []string   // to be asked for
	ids    [][16]byte // to be asked for
	code   int16      // for what is not there; 0: it does not exist
}

func (s *Server) newLookup() *lookup {
	return &lookup{
		view: s.o.Upstream.Topics(), groups: s.o.OffsetsPartitions,
		byName: map[string]*upstream.Topic{}, byID: map[[16]byte]*upstream.Topic{},
	}
}

// name looks for a topic's partitions in the view.
func (l *lookup) name(topic string, partitions ...int32) {
	if topic == txn.OffsetsTopic {
		l.byName[topic] = &upstream.Topic{Name: topic, Partitions: l.groups}
		return
	}
	t := l.view.Find([]byte(topic))
	l.byName[topic] = t
	if !hasEach(t, partitions) {
		l.names = append(l.names, topic)
	}
}

// id looks for a topic's partitions by its id.
func (l *lookup) id(id [16]byte, partitions ...int32) {
	t := l.view.FindID(id)
	l.byID[id] = t
	if !hasEach(t, partitions) {
		l.ids = append(l.ids, id)
	}
}

func hasEach(t *upstream.Topic, partitions []int32) bool {
	if t == nil {
		return false
	}
	for _, p := range partitions {
		if !t.Has(p) {
			return false
		}
	}
	return true
}

// ask asks the broker for what the view did not show: it may have been made just now.
func (l *lookup) ask(ctx context.Context) {
	if len(l.names)+len(l.ids) == 0 {
		return
	}
	err := l.view.Ask(ctx, l.names, l.ids)
	l.code = code(err)
	for _, n := range l.names {
		l.byName[n] = asked(l.view, n, err)
	}
	for _, id := range l.ids {
		l.byID[id] = askedID(l.view, id, err)
	}
}

func (l *lookup) has(topic string, partition int32) bool {
	t := l.byName[topic]
	return t != nil && t.Has(partition)
}
