package recordlog

import (
	"encoding/binary"
	"math/bits"

	"github.com/kcoord/kcoord/storage"
)

// noHeaders is a record's empty list of headers.
var noHeaders = []byte{0}

// Builder builds an uncompressed batch, record by record, in memory that it
// keeps from batch to batch.
type Builder struct {
	h   Header
	txn storage.Txn
	buf []byte
}

// Reset begins a batch at an offset, of records that belong to this transaction:
// Kafka keeps each transaction's apart, and each control record. Bytes handed out
// by Finish become invalid.
func (b *Builder) Reset(base int64, txn storage.Txn) {
	if cap(b.buf) < HeaderSize {
		b.buf = make([]byte, HeaderSize, 4096)
	}
	b.buf = b.buf[:HeaderSize]
	b.txn = txn
	b.h = Header{BaseOffset: base, LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
	if txn.Kind == storage.Plain {
		return
	}
	b.h.Attributes, b.h.ProducerID, b.h.ProducerEpoch = Transactional, txn.Producer, txn.Epoch
	if txn.Kind.Control() {
		b.h.Attributes |= Control
	} else {
		b.h.BaseSequence = 0 // what Kafka's coordinator writes, in every batch
	}
}

// Txn is the transaction of the batch.
func (b *Builder) Txn() storage.Txn { return b.txn }

// Len is the size of the batch so far, Count its number of records.
func (b *Builder) Len() int   { return len(b.buf) }
func (b *Builder) Count() int { return int(b.h.Count) }

// Base is the offset of the first record.
func (b *Builder) Base() int64 { return b.h.BaseOffset }

// Cap is the memory that the builder holds.
func (b *Builder) Cap() int { return cap(b.buf) }

// Append adds a record at the next offset. It keeps no reference to key and value.
func (b *Builder) Append(key, value []byte, timestamp int64) {
	if b.h.Count == 0 {
		b.h.BaseTimestamp, b.h.MaxTimestamp = timestamp, timestamp
	}
	b.h.MaxTimestamp = max(b.h.MaxTimestamp, timestamp)
	b.h.LastOffsetDelta = b.h.Count
	b.h.Count++
	b.buf = appendRecord(b.buf, 0, timestamp-b.h.BaseTimestamp, int64(b.h.LastOffsetDelta), key, value, noHeaders)
}

// Finish completes the batch and returns its bytes, which are the builder's and
// valid until Reset.
//
// REQUIRES: at least one record.
func (b *Builder) Finish() []byte {
	if b.h.Count == 0 {
		panic("recordlog: a batch without records")
	}
	finish(b.buf, &b.h)
	return b.buf
}

// Encode appends the batch of a header and its records to dst. The header's
// Count is taken from the records; its compression must be none.
func Encode(dst []byte, h Header, recs []Record) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	for i := range recs {
		r := &recs[i]
		ts := r.Timestamp - h.BaseTimestamp
		if h.Attributes&LogAppendTime != 0 {
			ts = 0 // what the client sent is not to be seen any more
		}
		headers := r.Headers
		if headers == nil {
			headers = noHeaders
		}
		dst = appendRecord(dst, r.Attributes, ts, r.Offset-h.BaseOffset, r.Key, r.Value, headers)
	}
	h.Count = int32(len(recs))
	finish(dst[start:], &h)
	return dst
}

// Filter appends the batch without the records that keep refuses to dst. Base
// offset and last offset delta stay, so that every offset does, and the kept
// records are copied as they are. A batch of which nothing is kept is left out:
// dst comes back as it was.
func (b *Batch) Filter(dst []byte, keep func(*Record) bool) ([]byte, error) {
	start := len(dst)
	dst = append(dst, b.data[:HeaderSize]...)
	h := b.Header
	h.Count = 0
	it := b.Iter()
	for it.Next() {
		if !keep(&it.Record) {
			continue
		}
		if h.Count == 0 || it.Record.Timestamp > h.MaxTimestamp {
			h.MaxTimestamp = it.Record.Timestamp
		}
		h.Count++
		dst = append(dst, it.raw...)
	}
	if it.err != nil || h.Count == 0 {
		return dst[:start], it.err
	}
	finish(dst[start:], &h)
	return dst, nil
}

func appendRecord(dst []byte, attributes int8, ts, delta int64, key, value, headers []byte) []byte {
	size := 1 + varintSize(ts) + varintSize(delta) + nullableSize(key) + nullableSize(value) + len(headers)
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, byte(attributes))
	dst = binary.AppendVarint(dst, ts)
	dst = binary.AppendVarint(dst, delta)
	dst = appendNullable(dst, key)
	dst = appendNullable(dst, value)
	return append(dst, headers...)
}

func appendNullable(dst, s []byte) []byte {
	if s == nil {
		return append(dst, 1) // zigzag of -1
	}
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

func nullableSize(s []byte) int {
	if s == nil {
		return 1
	}
	return varintSize(int64(len(s))) + len(s)
}

// varintSize is the length of the zigzag varint, which is Kafka's and Go's alike.
func varintSize(v int64) int {
	return (bits.Len64(uint64(v<<1)^uint64(v>>63)|1) + 6) / 7
}
