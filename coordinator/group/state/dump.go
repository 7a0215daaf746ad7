package state

import (
	"fmt"
	"io"

	"github.com/kcoord/kcoord/storage"
)

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
	g.EachPending(func(r Record) {
		fmt.Fprintf(w, "  pending in %d/%d: ", r.Txn.Producer, r.Txn.Epoch)
		if r.Kind == KindUnreadable {
			fmt.Fprintf(w, "unreadable %x=%x: %v at=%d\n", r.Key, r.Value, r.Problem, r.Offset.At)
			return
		}
		o := r.Offset
		fmt.Fprintf(w, "%s-%d=%d legacy=%t epoch=%d metadata=%q committed=%d expires=%d id=%x at=%d\n", r.Topic, r.Partition,
			o.Offset, r.LegacyKey, o.LeaderEpoch, o.Metadata, o.Committed.UnixMilli(), o.Expires.UnixMilli(), o.TopicID, o.At)
	})
	g.Others(func(r Record) { fmt.Fprintf(w, "  other %x=%x\n", r.Key, r.Value) })
	g.Problems(func(r Record) {
		if r.Txn.Kind != storage.Pending { // those are told of
			fmt.Fprintf(w, "  unreadable %x=%x: %v\n", r.Key, r.Value, r.Problem)
		}
	})
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}
