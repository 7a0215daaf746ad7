package state

import (
	"encoding/binary"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin"
)

// offsetEncoder writes the records of committed offsets. Those of one request are the
// same but for the partition, at the end of the key, and the offset, behind
// the value's version: what is the same is copied from the record before.
type offsetEncoder struct {
	group, topic string
	key          []byte // of group and topic

	like    Offset // what value says but for the offset; At is not part of it
	version int16
	value   []byte
}

const partitionSize, atOffset = 4, 2 // bytes

func (e *offsetEncoder) appendKey(dst []byte, r *Record) ([]byte, error) {
	if r.LegacyKey {
		k := groupmeta.LegacyOffsetCommitKey{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		return k.AppendTo(dst)
	}
	if len(e.key) == 0 || r.Group != e.group || r.Topic != e.topic {
		k := groupmeta.OffsetCommitKey{Group: r.Group, Topic: r.Topic}
		key, err := k.AppendTo(e.key[:0])
		if e.key = key; err != nil {
			e.key = nil
			return dst, err
		}
		e.group, e.topic = r.Group, r.Topic
	}
	dst = append(dst, e.key[:len(e.key)-partitionSize]...)
	return binary.BigEndian.AppendUint32(dst, uint32(r.Partition)), nil
}

func (e *offsetEncoder) appendValue(dst []byte, o *Offset, version int16) ([]byte, error) {
	if len(e.value) == 0 || version != e.version || !e.like.same(o) {
		v := groupmeta.OffsetCommitValue{
			LeaderEpoch:     o.LeaderEpoch,
			Metadata:        o.Metadata,
			CommitTimestamp: recordbin.Millis(o.Committed),
			ExpireTimestamp: recordbin.Millis(o.Expires),
			TopicID:         o.TopicID,
		}
		value, err := v.AppendTo(e.value[:0], version)
		if e.value = value; err != nil {
			e.value = nil
			return dst, err
		}
		e.like, e.version = *o, version
	}
	at := len(dst) + atOffset
	dst = append(dst, e.value...)
	binary.BigEndian.PutUint64(dst[at:], uint64(o.Offset))
	return dst, nil
}

// same says whether a record's value is the same but for the offset.
func (o *Offset) same(as *Offset) bool {
	return o.LeaderEpoch == as.LeaderEpoch && o.Metadata == as.Metadata && o.TopicID == as.TopicID &&
		o.Committed.Equal(as.Committed) && o.Expires.Equal(as.Expires)
}
