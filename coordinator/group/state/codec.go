package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// Codec turns records into Kafka's bytes and back. Each shard has its own.
type Codec struct {
	// Versions are those that records are written in; zero: the latest. They may change
	// between two steps of the shard, and not within one.
	Versions metadataversion.RecordVersions
	// Unreadable is told of every record that could not be read. It must not
	// block. key is the record's own.
	Unreadable func(group string, key []byte, problem error)

	offsets offsetEncoder
}

// Index files a key under its group. What has no group that could be read is an orphan.
func Index(_ storage.ShardID, key []byte) (entity []byte, class storage.Class) {
	group, t, err := groupmeta.GroupOfKey(key)
	switch {
	case err != nil:
		return nil, storage.Orphan
	case t == groupmeta.TypeOffsetCommit, t == groupmeta.TypeLegacyOffsetCommit:
		return group, storage.Body
	}
	return group, storage.Header
}

// Append appends a record's key and value. Decisions never make a record that
// cannot be written: what is too long for one is refused before (group's check.go).
func (c *Codec) Append(key, value []byte, r *Record) (k, v []byte, tombstone bool) {
	var err error
	switch {
	case r.Kind == KindOffset && r.Key == nil:
		key, err = c.offsets.appendKey(key, r)
		if err == nil && !r.Tombstone {
			value, err = c.offsets.appendValue(value, &r.Offset, c.writes().OffsetCommit(!r.Offset.Expires.IsZero()))
		}
	case r.Kind == KindGroup && r.Key == nil:
		k := groupmeta.GroupMetadataKey{Group: r.Group}
		key, err = k.AppendTo(key)
		if err == nil && !r.Tombstone {
			value, err = r.Classic.value().AppendTo(value, c.writes().Group)
		}
	case r.Kind == KindMarker:
		key, value = storage.AppendControl(key, value, r.Txn.Kind, r.CoordinatorEpoch)
	default: // bytes that are written as they are
		key, value = append(key, r.Key...), append(value, r.Value...)
	}
	if err != nil {
		panic(fmt.Sprintf("group %q: a record that cannot be written: %v", r.Group, err))
	}
	return key, value, r.Tombstone
}

func (c *Classic) value() *groupmeta.GroupMetadataValue {
	v := &groupmeta.GroupMetadataValue{
		ProtocolType:          c.ProtocolType,
		Generation:            c.Generation,
		Protocol:              recordbin.FromPtr(c.Protocol),
		Leader:                recordbin.FromPtr(c.Leader),
		CurrentStateTimestamp: recordbin.Millis(c.Since),
		Members:               make([]groupmeta.MemberMetadata, len(c.Members)),
	}
	for i, m := range c.Members {
		v.Members[i] = groupmeta.MemberMetadata{
			MemberID:         m.ID,
			GroupInstanceID:  recordbin.FromPtr(m.InstanceID),
			ClientID:         m.ClientID,
			ClientHost:       m.ClientHost,
			RebalanceTimeout: int32(m.RebalanceTimeout.Milliseconds()),
			SessionTimeout:   int32(m.SessionTimeout.Milliseconds()),
			Subscription:     m.Subscription,
			Assignment:       m.Assignment,
		}
	}
	return v
}

// Txn is the transaction that the record is part of.
func (c *Codec) Txn(r *Record) storage.Txn { return r.Txn }

// Decode reads a record; it keeps no reference to the bytes. What is wrong with
// a value puts the record's group into quarantine when applied. A key that
// Index files under a group but that is damaged further on does so, too, and
// what is no offset and yet part of a transaction: nobody writes that so far.
func (c *Codec) Decode(rec storage.Record) Record {
	if rec.Txn.Kind.Control() {
		return Record{Kind: KindMarker, Txn: rec.Txn, CoordinatorEpoch: storage.CoordinatorEpoch(rec.Value)}
	}
	r := c.decode(rec.Key, rec.Value, rec.Txn.Kind)
	r.Txn = rec.Txn
	return r
}

func (c *Codec) decode(key, value []byte, kind storage.TxnKind) Record {
	group, t, err := groupmeta.GroupOfKey(key)
	if err != nil { // an orphan, which no entity's loading brings
		return Record{Kind: KindOrphan, Key: clone(key), Value: clone(value), Tombstone: value == nil}
	}
	r := Record{Group: string(group), Tombstone: value == nil}
	switch t {
	case groupmeta.TypeOffsetCommit, groupmeta.TypeLegacyOffsetCommit:
		r.Kind, r.LegacyKey = KindOffset, t == groupmeta.TypeLegacyOffsetCommit
		err = r.decodeOffset(key, value)
	case groupmeta.TypeGroupMetadata:
		r.Kind = KindGroup
		if value != nil {
			r.Classic, err = decodeClassic(value)
		}
	default:
		r.Kind, r.Key, r.Value = KindOther, clone(key), clone(value)
		if _, err = groupmeta.DecodeKey(key); err == nil {
			_, _, err = groupmeta.DecodeValue(t, value)
		}
	}
	if err == nil && kind == storage.Pending && r.Kind != KindOffset && value != nil {
		err = fmt.Errorf("state: a record of type %d in a transaction (written by a later version?)", t)
	}
	if err == nil {
		return r
	}
	if errors.Is(err, groupmeta.ErrUnknownVersion) {
		err = fmt.Errorf("%w (written by a later version?)", err)
	}
	if c.Unreadable != nil {
		c.Unreadable(r.Group, clone(key), err)
	}
	return Record{Kind: KindUnreadable, Group: r.Group, Tombstone: r.Tombstone, Key: clone(key), Value: clone(value), Problem: err}
}

// Exactly reads a record that is to be written as the bytes are.
func (c *Codec) Exactly(key, value []byte) Record {
	r := c.Decode(storage.Record{Key: key, Value: value})
	r.Key, r.Value = clone(key), clone(value)
	return r
}

func (r *Record) decodeOffset(key, value []byte) error {
	if r.LegacyKey {
		var k groupmeta.LegacyOffsetCommitKey
		if err := k.Decode(key); err != nil {
			return err
		}
		r.Topic, r.Partition = k.Topic, k.Partition
		if value == nil {
			return nil
		}
		var v groupmeta.LegacyOffsetCommitValue
		if _, err := v.Decode(value); err != nil {
			return err
		}
		r.Offset = Offset{Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata, Committed: recordbin.Instant(v.CommitTimestamp)}
		return nil
	}
	var k groupmeta.OffsetCommitKey
	if err := k.Decode(key); err != nil {
		return err
	}
	r.Topic, r.Partition = k.Topic, k.Partition
	if value == nil {
		return nil
	}
	var v groupmeta.OffsetCommitValue
	if _, err := v.Decode(value); err != nil {
		return err
	}
	r.Offset = Offset{
		Offset:      v.Offset,
		LeaderEpoch: v.LeaderEpoch,
		Metadata:    v.Metadata,
		Committed:   recordbin.Instant(v.CommitTimestamp),
		Expires:     recordbin.Instant(v.ExpireTimestamp),
		TopicID:     v.TopicID,
	}
	return nil
}

func decodeClassic(value []byte) (*Classic, error) {
	v := groupmeta.NewGroupMetadataValue()
	if _, err := v.Decode(value); err != nil {
		return nil, err
	}
	c := &Classic{
		ProtocolType: v.ProtocolType,
		Generation:   v.Generation,
		Protocol:     pointer(v.Protocol),
		Leader:       pointer(v.Leader),
		Since:        recordbin.Instant(v.CurrentStateTimestamp),
		Members:      make([]Member, len(v.Members)),
	}
	for i, m := range v.Members {
		rebalance := m.RebalanceTimeout
		if rebalance < 0 { // version 0 has none: Kafka takes the session timeout
			rebalance = m.SessionTimeout
		}
		c.Members[i] = Member{
			ID:               m.MemberID,
			InstanceID:       pointer(m.GroupInstanceID),
			ClientID:         m.ClientID,
			ClientHost:       m.ClientHost,
			RebalanceTimeout: time.Duration(rebalance) * time.Millisecond,
			SessionTimeout:   time.Duration(m.SessionTimeout) * time.Millisecond,
			Subscription:     m.Subscription,
			Assignment:       m.Assignment,
		}
	}
	return c, nil
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func pointer(s groupmeta.NullString) *string {
	if !s.Valid {
		return nil
	}
	return &s.String
}
