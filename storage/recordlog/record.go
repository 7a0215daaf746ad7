package recordlog

import (
	"encoding/binary"
	"math"
)

// Record is one record of a batch. Its slices alias the batch.
type Record struct {
	Offset     int64
	Timestamp  int64 // milliseconds since 1970
	Attributes int8  // unused by Kafka so far
	Key, Value []byte
	// Headers are the record headers as stored, their count in front.
	Headers []byte
}

// Iter walks over the records of a batch.
type Iter struct {
	// Record is the current one, after Next has returned true.
	Record Record

	batch   *Batch
	rest    []byte
	raw     []byte // the current record as stored
	left    int32
	lastOff int64
	err     error
}

// Iter starts before the first record. A compressed batch has no records to
// walk over but gives ErrCompressed.
func (b *Batch) Iter() Iter {
	it := Iter{batch: b, rest: b.data[HeaderSize:], left: b.Count, lastOff: b.BaseOffset - 1}
	if b.Attributes&CompressionMask != 0 {
		it.err = ErrCompressed
	}
	return it
}

// Err is why Next returned false before the end.
func (it *Iter) Err() error { return it.err }

// Next goes to the next record.
func (it *Iter) Next() bool {
	if it.err != nil {
		return false
	}
	if it.left == 0 {
		if len(it.rest) != 0 {
			it.fail("bytes after the last record")
		}
		return false
	}
	it.left--
	size, n := binary.Varint(it.rest)
	if n <= 0 || size < 0 || size > int64(len(it.rest)-n) {
		return it.fail("length of a record")
	}
	end := n + int(size)
	it.raw = it.rest[:end:end]
	body := it.raw[n:]
	it.rest = it.rest[end:]
	return it.decode(body)
}

func (it *Iter) decode(body []byte) bool {
	if len(body) == 0 {
		return it.fail("a record without bytes")
	}
	r := &it.Record
	r.Attributes = int8(body[0])
	p := body[1:]
	ts, n := binary.Varint(p)
	if n <= 0 {
		return it.fail("timestamp of a record")
	}
	p = p[n:]
	delta, n := binary.Varint(p)
	if n <= 0 || delta < 0 || delta > int64(it.batch.LastOffsetDelta) {
		return it.fail("offset of a record")
	}
	p = p[n:]
	r.Offset = it.batch.BaseOffset + delta
	if r.Offset <= it.lastOff {
		return it.fail("offset of a record does not ascend")
	}
	it.lastOff = r.Offset
	r.Timestamp = it.batch.BaseTimestamp + ts
	if it.batch.Attributes&LogAppendTime != 0 {
		r.Timestamp = it.batch.MaxTimestamp
	}
	var ok bool
	if r.Key, p, ok = nullable(p); !ok {
		return it.fail("key of a record")
	}
	if r.Value, p, ok = nullable(p); !ok {
		return it.fail("value of a record")
	}
	if !soundHeaders(p) {
		return it.fail("headers of a record")
	}
	r.Headers = p
	return true
}

func (it *Iter) fail(what string) bool {
	it.err = corrupt(it.batch.pos, "bad %s (after offset %d)", what, it.lastOff)
	return false
}

// nullable reads a byte string whose length -1 stands for nil. An empty one is not nil.
func nullable(p []byte) (s, rest []byte, ok bool) {
	size, n := binary.Varint(p)
	if n <= 0 || size < -1 || size > int64(len(p)-n) {
		return nil, nil, false
	}
	p = p[n:]
	if size < 0 {
		return nil, p, true
	}
	return p[:size:size], p[size:], true
}

// soundHeaders says whether p is a count and that many headers, and nothing else.
func soundHeaders(p []byte) bool {
	count, n := binary.Varint(p)
	if n <= 0 || count < 0 || count > math.MaxInt32 {
		return false
	}
	p = p[n:]
	for ; count > 0; count-- {
		key, rest, ok := nullable(p)
		if !ok || key == nil {
			return false
		}
		if _, p, ok = nullable(rest); !ok {
			return false
		}
	}
	return len(p) == 0
}
