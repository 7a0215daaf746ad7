package pebblelog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// The key space. Shards are BE16 and offsets BE64, so that keys sort as they do:
//
//	l shard baseOffset            → a Kafka record batch: a shard's records of one commit
//	k shard 0 entity 0            → nothing: the entity has a live record
//	k shard 0 entity 1 key        → row: the latest header record of this key
//	k shard 1 entity key          → row: the latest body record
//	k shard 2 (no entity) key     → row: the latest record of no entity
//	k shard 3 entity class key pid→ row: a producer's (BE64) pending record
//	m shard                       → how far the key table is folded
//
// The entity is escaped (00 as 00 ff) and ends with 00 01: no entity's prefix
// is part of another's, and the order of bytes holds. Markers and headers lie
// together, so that listing the entities reads them and nothing else.
const (
	spaceLog  = 'l'
	spaceKeys = 'k'
	spaceMeta = 'm'

	regionHeads   = 0
	regionBodies  = 1
	regionOrphans = 2
	regionPending = 3

	tagMarker = 0
	tagHeader = 1
)

func shardKey(dst []byte, space byte, id storage.ShardID) []byte {
	return binary.BigEndian.AppendUint16(append(dst, space), uint16(id))
}

func logKey(dst []byte, id storage.ShardID, base storage.Offset) []byte {
	return binary.BigEndian.AppendUint64(shardKey(dst, spaceLog, id), uint64(base))
}

const logKeySize = 1 + 2 + 8

// baseOf is the base offset that a log key names.
func baseOf(key []byte) storage.Offset {
	return storage.Offset(binary.BigEndian.Uint64(key[3:logKeySize]))
}

func regionKey(dst []byte, id storage.ShardID, region byte) []byte {
	return append(shardKey(dst, spaceKeys, id), region)
}

func entityKey(dst []byte, id storage.ShardID, region byte, entity []byte) []byte {
	dst = regionKey(dst, id, region)
	for {
		i := bytes.IndexByte(entity, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, entity[:i+1]...), 0xff)
		entity = entity[i+1:]
	}
	return append(append(dst, entity...), 0, 1)
}

const regionKeySize = 1 + 2 + 1

func markerKey(dst []byte, id storage.ShardID, entity []byte) []byte {
	return append(entityKey(dst, id, regionHeads, entity), tagMarker)
}

// rowKey is where the latest record of a key is kept.
func rowKey(dst []byte, id storage.ShardID, entity []byte, class storage.Class, key []byte) []byte {
	switch class {
	case storage.Header:
		dst = append(entityKey(dst, id, regionHeads, entity), tagHeader)
	case storage.Body:
		dst = entityKey(dst, id, regionBodies, entity)
	default:
		dst = entityKey(dst, id, regionOrphans, nil)
	}
	return append(dst, key...)
}

// splitEntity takes the entity, which is appended to buf unescaped, off a key of the key table.
func splitEntity(row, buf []byte) (entity, rest []byte, err error) {
	p := row[regionKeySize:]
	for {
		i := bytes.IndexByte(p, 0)
		if i < 0 || i+1 == len(p) {
			return nil, nil, fmt.Errorf("%w: key table: key %x has no end of entity", storage.ErrCorrupt, row)
		}
		buf = append(buf, p[:i]...)
		end := p[i+1] == 1
		p = p[i+2:]
		if end {
			return buf, p, nil
		}
		buf = append(buf, 0)
	}
}

// splitRow takes a key of the key table apart, but for pending ones. The entity
// is appended to buf unescaped. A marker has marker set and no key.
func splitRow(row, buf []byte) (entity, key []byte, marker bool, err error) {
	entity, p, err := splitEntity(row, buf)
	if err != nil {
		return nil, nil, false, err
	}
	if row[regionKeySize-1] == regionHeads {
		if len(p) == 0 {
			return nil, nil, false, fmt.Errorf("%w: key table: key %x has no tag", storage.ErrCorrupt, row)
		}
		marker = p[0] == tagMarker
		p = p[1:]
	}
	return entity, p, marker, nil
}

// pendingKey is where a producer's pending record of a key is kept.
func pendingKey(dst []byte, id storage.ShardID, entity []byte, class storage.Class, key []byte, producer int64) []byte {
	if class == storage.Orphan {
		entity = nil
	}
	dst = append(entityKey(dst, id, regionPending, entity), byte(class))
	return binary.BigEndian.AppendUint64(append(dst, key...), uint64(producer))
}

// pendingAt is a pendingKey taken apart.
type pendingAt struct {
	entity, key []byte
	class       storage.Class
	producer    int64
}

// splitPending takes a pendingKey apart. The entity is appended to buf unescaped.
func splitPending(row, buf []byte) (pendingAt, error) {
	entity, p, err := splitEntity(row, buf)
	if err != nil {
		return pendingAt{}, err
	}
	if len(p) < 1+8 || p[0] > byte(storage.Orphan) {
		return pendingAt{}, fmt.Errorf("%w: key table: key %x of a pending record", storage.ErrCorrupt, row)
	}
	at := len(p) - 8
	return pendingAt{entity, p[1:at], storage.Class(p[0]), int64(binary.BigEndian.Uint64(p[at:]))}, nil
}

// after is the first key that does not have the prefix, in place.
//
// REQUIRES: a byte other than ff, which the space at its start is.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; ; i-- {
		if prefix[i] != 0xff {
			prefix[i]++
			return prefix[:i+1]
		}
	}
}

// row is a record as the key table holds it.
type row struct {
	kind      byte
	epoch     int16 // of rowPending: its producer's
	offset    int64
	timestamp int64
	control   int64  // of rowCommitted: the offset of the control record that it counts by
	value     []byte // not nil but in a rowTombstone
}

const (
	rowTombstone = 0
	rowValue     = 1
	rowCommitted = 2 // a record of a transaction
	rowPending   = 3
)

// extra is the third number of a row, if its kind has one.
func (r *row) extra() (int64, bool) {
	switch r.kind {
	case rowCommitted:
		return r.control - r.offset, true
	case rowPending:
		return int64(r.epoch), true
	}
	return 0, false
}

func (r *row) size() int {
	var buf [3 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(buf[:], uint64(r.offset))
	n += binary.PutVarint(buf[n:], r.timestamp)
	if x, has := r.extra(); has {
		n += binary.PutVarint(buf[n:], x)
	}
	return 1 + n + len(r.value)
}

// put encodes the row into dst, which has its size.
func (r *row) put(dst []byte) {
	dst[0] = r.kind
	n := 1 + binary.PutUvarint(dst[1:], uint64(r.offset))
	n += binary.PutVarint(dst[n:], r.timestamp)
	if x, has := r.extra(); has {
		n += binary.PutVarint(dst[n:], x)
	}
	copy(dst[n:], r.value)
}

// parseRow decodes a row, whose value aliases b.
func parseRow(b []byte) (row, error) {
	if len(b) < 3 || b[0] > rowPending {
		return row{}, fmt.Errorf("%w: key table: row %x", storage.ErrCorrupt, b)
	}
	r := row{kind: b[0]}
	p := b[1:]
	offset, n := binary.Uvarint(p)
	if n <= 0 {
		return row{}, fmt.Errorf("%w: key table: offset of row %x", storage.ErrCorrupt, b)
	}
	r.offset, p = int64(offset), p[n:]
	if r.timestamp, n = binary.Varint(p); n <= 0 {
		return row{}, fmt.Errorf("%w: key table: timestamp of row %x", storage.ErrCorrupt, b)
	}
	p = p[n:]
	if _, has := r.extra(); has {
		x, n := binary.Varint(p)
		if n <= 0 {
			return row{}, fmt.Errorf("%w: key table: transaction of row %x", storage.ErrCorrupt, b)
		}
		p = p[n:]
		if r.kind == rowPending {
			r.epoch = int16(x)
		} else {
			r.control = r.offset + x
		}
	}
	if r.kind != rowTombstone {
		r.value = p
	}
	return r, nil
}

// record is the record of a key that a row holds: what was committed in a
// transaction is a plain one from here on.
func (r *row) record(key []byte) storage.Record {
	return storage.Record{Key: key, Value: r.value, Time: time.UnixMilli(r.timestamp).UTC()}
}

// meta is what is known of a shard beside its records.
type meta struct {
	// folded is up to where the key table is complete: always a set's end.
	folded storage.Offset
	// index is the version of the Index that filed the key table's rows.
	index uint64
	// written and live decide when to clean: bytes folded since the last
	// cleaning and what that left. They are estimates and may be lost.
	written, live int64
}

func (m *meta) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(m.folded))
	b = binary.AppendUvarint(b, m.index)
	b = binary.AppendUvarint(b, uint64(m.written))
	return binary.AppendUvarint(b, uint64(m.live))
}

func parseMeta(b []byte) (meta, error) {
	var v [4]uint64
	p := b
	for i := range v {
		var n int
		if v[i], n = binary.Uvarint(p); n <= 0 {
			return meta{}, fmt.Errorf("%w: meta row %x", storage.ErrCorrupt, b)
		}
		p = p[n:]
	}
	return meta{storage.Offset(v[0]), v[1], int64(v[2]), int64(v[3])}, nil
}
