package group

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
)

// answer is a response in words.
func (h *harness) answer(resp Response) string {
	var b strings.Builder
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("join %s member=%s generation=%d", code(r.ErrorCode), h.name(r.MemberID, ""), r.Generation)
		}
		fmt.Fprintf(&b, "join member=%s generation=%d type=%s protocol=%s leader=%s", h.name(r.MemberID, ""), r.Generation, *r.ProtocolType, *r.Protocol, h.name(r.LeaderID, ""))
		for _, m := range r.Members {
			fmt.Fprintf(&b, " %s%s:%s", h.name(m.MemberID, ""), instance(m.InstanceID), text(m.ProtocolMetadata))
		}
		if r.SkipAssignment {
			b.WriteString(" skip-assignment")
		}
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return "sync " + code(r.ErrorCode)
		}
		fmt.Fprintf(&b, "sync type=%s protocol=%s %q", *r.ProtocolType, *r.Protocol, r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return "heartbeat " + code(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		b.WriteString("leave " + code(r.ErrorCode))
		for _, m := range r.Members {
			fmt.Fprintf(&b, " %s%s:%s", h.name(m.MemberID, ""), instance(m.InstanceID), code(m.ErrorCode))
		}
	case *kmsg.OffsetCommitResponse:
		b.WriteString("commit")
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
	case TxnCommitted:
		return txnCommitted(r)
	case Marked:
		return "marker " + code(r.ErrorCode)
	case *kmsg.OffsetFetchResponseGroup:
		b.WriteString("fetch " + code(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					fmt.Fprintf(&b, " %s-%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
					continue
				}
				fmt.Fprintf(&b, " %s-%d=%d%s", t.Topic, p.Partition, p.Offset, extras(p.LeaderEpoch, *p.Metadata))
			}
		}
	case *kmsg.OffsetDeleteResponse:
		b.WriteString("offset-delete " + code(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
	case *kmsg.DescribeGroupsResponseGroup:
		fmt.Fprintf(&b, "%s %s type=%q protocol=%q", code(r.ErrorCode), r.State, r.ProtocolType, r.Protocol)
		for _, m := range r.Members {
			fmt.Fprintf(&b, " %s%s:%s:%q", h.name(m.MemberID, ""), instance(m.InstanceID), text(m.ProtocolMetadata), m.MemberAssignment)
		}
	case []kmsg.ListGroupsResponseGroup:
		for _, g := range r {
			fmt.Fprintf(&b, "(%s %s %s type=%q)", g.Group, g.GroupType, g.GroupState, g.ProtocolType)
		}
	case *kmsg.DeleteGroupsResponseGroup:
		return "delete " + code(r.ErrorCode)
	case Observed:
		return fmt.Sprintf("observed generation=%d %s", r.Generation, h.answer(r.DescribeGroupsResponseGroup))
	case OffsetsSet:
		return h.offsetsSet(r)
	case []Quarantine:
		for _, q := range r {
			fmt.Fprintf(&b, "(%s", q.Group)
			for _, p := range q.Problems {
				fmt.Fprintf(&b, " %x=%x: %v", p.Key, p.Value, p.Err)
			}
			b.WriteString(")")
		}
	default:
		return fmt.Sprintf("%+v", r)
	}
	return b.String()
}

// record is a record in words.
func (h *harness) record(r state.Record) string {
	switch {
	case r.Kind == state.KindOffset && r.Tombstone && r.LegacyKey:
		return fmt.Sprintf("record %s: tombstone of %s-%d under a legacy key", r.Group, r.Topic, r.Partition)
	case r.Kind == state.KindOffset && r.Tombstone:
		return fmt.Sprintf("record %s: tombstone of %s-%d", r.Group, r.Topic, r.Partition)
	case r.Kind == state.KindOffset:
		s := fmt.Sprintf("record %s: %s-%d=%d%s committed=%s", r.Group, r.Topic, r.Partition, r.Offset.Offset, extras(r.Offset.LeaderEpoch, r.Offset.Metadata), since(r.Offset.Committed))
		if !r.Offset.Expires.IsZero() {
			s += " expires=" + since(r.Offset.Expires)
		}
		return s + inTxn(r)
	case r.Kind == state.KindMarker:
		return markerRecord(r)
	case r.Kind == state.KindGroup && r.Tombstone:
		return fmt.Sprintf("record %s: tombstone of the group", r.Group)
	case r.Kind != state.KindGroup:
		return fmt.Sprintf("record %s: kind %d %x=%x", r.Group, r.Kind, r.Key, r.Value)
	}
	c := r.Classic
	var b strings.Builder
	leader := "null"
	if c.Leader != nil {
		leader = h.name(*c.Leader, "")
	}
	protocol := "null"
	if c.Protocol != nil {
		protocol = *c.Protocol
	}
	fmt.Fprintf(&b, "record %s: type=%q generation=%d protocol=%s leader=%s since=%s", r.Group, c.ProtocolType, c.Generation, protocol, leader, since(c.Since))
	for _, m := range c.Members {
		fmt.Fprintf(&b, "\n    %s%s client=%s host=%s rebalance=%v session=%v %s %q", h.name(m.ID, ""), instance(m.InstanceID), m.ClientID, m.ClientHost,
			m.RebalanceTimeout, m.SessionTimeout, text(m.Subscription), m.Assignment)
	}
	return b.String()
}

func instance(i *string) string {
	if i == nil {
		return ""
	}
	return "/" + *i
}

func extras(epoch int32, metadata string) (s string) {
	if epoch >= 0 {
		s += fmt.Sprintf("@%d", epoch)
	}
	if metadata != "" {
		if len(metadata) > 20 {
			metadata = fmt.Sprintf("%d bytes", len(metadata))
		}
		s += fmt.Sprintf("%q", metadata)
	}
	return s
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(epoch).String()
}

// text is a protocol's metadata in words.
func text(b []byte) string {
	topics := map[string]struct{}{}
	if len(b) > 2 && b[0] == 0 && subscription(b, topics) {
		var names []string
		for t := range topics {
			names = append(names, t)
		}
		return fmt.Sprint(sortedStrings(names))
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
