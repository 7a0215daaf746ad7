package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// TxnCommit commits offsets with a transaction: they count when its marker says
// so. That the transaction is open, and the producer the one it is of, is checked
// before by its coordinator. It is answered by a TxnCommitted. As in Commit, topics are
// those that exist, with names and ids.
type TxnCommit struct {
	*kmsg.TxnOffsetCommitRequest
	// Fences: the request has a generation and a member id (v3, KIP-447).
	Fences bool
}

// TxnCommitted is Kafka's answer, with what api/kafka logs and counts. Of a group
// that does not exist it has GROUP_ID_NOT_FOUND, which api/kafka makes ILLEGAL_GENERATION
// for versions before 6.
type TxnCommitted struct {
	*kmsg.TxnOffsetCommitResponse
	// Legacy says that the commit named no member, and what came of it; LegacyNot if it did.
	Legacy LegacyCommit
}

// LegacyCommit is what came of a transactional commit that names no member of the
// group: no fencing keeps such a one of a stale instance apart.
type LegacyCommit uint8

const (
	LegacyNot     LegacyCommit = iota // it named one, or nothing to commit
	LegacyAllowed                     // as Kafka does
	LegacyWarned                      // like LegacyAllowed, and to be told of
	LegacyDenied
)

// LegacyPolicy decides about transactional commits with neither generation nor
// member id (transaction.offset.commit.legacy). Denied ones are refused whether or not
// the group has members or exists: a stale instance may well be the last one to write.
type LegacyPolicy uint8

const (
	DenyLegacy LegacyPolicy = iota
	WarnLegacy
	AllowLegacy
)

// Entity is part of Request.
func (r TxnCommit) Entity() (string, bool) { return r.Group, true }

// legacy is what the policy says to a commit.
func (c *Config) legacy(r TxnCommit) LegacyCommit {
	if len(r.Topics) == 0 || r.Generation >= 0 || r.MemberID != "" {
		return LegacyNot
	}
	policy, own := c.LegacyTxnCommitOf[r.Group]
	if !own {
		policy = c.LegacyTxnCommit
	}
	switch policy {
	case AllowLegacy:
		return LegacyAllowed
	case WarnLegacy:
		return LegacyWarned
	}
	return LegacyDenied
}

// txnCommit writes pending offsets.
func (m *Machine) txnCommit(now time.Time, e *entry, r TxnCommit, out *output) TxnCommitted {
	done := TxnCommitted{txnCommitReply(r, none), m.cfg.legacy(r)}
	if len(r.Topics) == 0 {
		return done // as in commit
	}
	if code := m.mayTxnCommit(e, r, done.Legacy); code != none {
		done.TxnOffsetCommitResponse = txnCommitReply(r, code)
		return done
	}
	txn := storage.Txn{Producer: r.ProducerID, Epoch: r.ProducerEpoch, Kind: storage.Pending}
	n := len(out.Records)
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			metadata, ok := m.metadataOf(t.Topic, p.Metadata)
			if !ok {
				done.Topics[i].Partitions[j].ErrorCode = offsetMetadataTooLarge
				continue
			}
			out.Record(state.Record{Kind: state.KindOffset, Group: e.id, Txn: txn, Topic: t.Topic, Partition: p.Partition, Offset: state.Offset{
				Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: metadata, Committed: now, TopicID: t.TopicID,
			}})
		}
	}
	if n = len(out.Records) - n; n > 0 {
		m.counts.OffsetCommits += int64(n)
		if e.live == nil && e.kind == kindClassic {
			e.live = newLiveGroup(e, now)
		}
	}
	return done
}

// mayTxnCommit checks who commits, in Kafka's order (KIP-447). Other than in
// mayCommit the group may be completing a rebalance: the transaction's work is done,
// and whoever gets its partitions waits for its end. Nor is the session refreshed:
// this is the producer, not the consumer.
func (m *Machine) mayTxnCommit(e *entry, r TxnCommit, legacy LegacyCommit) int16 {
	switch {
	case legacy == LegacyDenied && r.Fences:
		return unknownMemberID // the Java client gives up the transaction, and may go on
	case legacy == LegacyDenied:
		return unsupportedForMessageFormat // the one that old clients know as final
	case tooLong(r.Group):
		return invalidGroupID
	}
	if code := m.isMember(e, r); code != none {
		return code
	}
	if r.ProducerEpoch < m.hard.Epoch(r.ProducerID) {
		return invalidProducerEpoch // of a transaction before the one that is pending
	}
	return none
}

func (m *Machine) isMember(e *entry, r TxnCommit) int16 {
	switch g := e.live; {
	case e.kind != kindClassic: // as in mayCommit
		return none
	case g == nil && r.Generation >= 0:
		return groupIDNotFound
	case g == nil, r.Generation < 0 && g.state == stateEmpty:
		return none
	case r.Generation < 0 && r.MemberID == "" && r.InstanceID == nil:
		return none // that the policy allows it was looked at
	default:
		_, code := g.check(r.MemberID, r.InstanceID)
		if code == none && r.Generation != g.generation {
			code = illegalGeneration
		}
		return code
	}
}

// txnCommitReply answers all partitions of a commit with one code.
func txnCommitReply(r TxnCommit, code int16) *kmsg.TxnOffsetCommitResponse {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		t := &r.Topics[i]
		resp.Topics[i] = kmsg.TxnOffsetCommitResponseTopic{
			Topic: t.Topic, TopicID: t.TopicID, Partitions: make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions)),
		}
		for j := range t.Partitions {
			resp.Topics[i].Partitions[j] = kmsg.TxnOffsetCommitResponseTopicPartition{Partition: t.Partitions[j].Partition, ErrorCode: code}
		}
	}
	return resp
}
