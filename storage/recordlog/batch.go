package recordlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/kcoord/kcoord/storage"
)

// Where the fields of a v2 batch lie.
const (
	atLength         = 8
	atLeaderEpoch    = 12
	atMagic          = 16
	atCRC            = 17
	atAttributes     = 21 // the checksum covers everything from here on
	atLastDelta      = 23
	atBaseTimestamp  = 27
	atMaxTimestamp   = 35
	atProducerID     = 43
	atProducerEpoch  = 51
	atBaseSequence   = 53
	atCount          = 57
	HeaderSize       = 61
	lengthCountsFrom = 12 // batchLength counts the bytes after itself
)

// Bits of a batch's attributes.
const (
	CompressionMask = 0x07
	LogAppendTime   = 0x08
	Transactional   = 0x10
	Control         = 0x20
	DeleteHorizon   = 0x40 // BaseTimestamp is when tombstones may go (KIP-534)
)

// ErrCompressed says that a batch is sound but its records are compressed.
var ErrCompressed = errors.New("recordlog: compressed batch")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what stands before a batch's records, but for what follows from
// them: length and checksum.
type Header struct {
	BaseOffset      int64
	LeaderEpoch     int32
	Attributes      int16
	LastOffsetDelta int32 // outlives the last record when cleaning drops it
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32
}

// NextOffset is the offset after the batch, whether or not its last record is still there.
func (h *Header) NextOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) + 1 }

// Batch is one batch whose frame and checksum have been found sound.
type Batch struct {
	Header
	data []byte
	pos  int64
}

// Bytes is the batch as stored.
func (b *Batch) Bytes() []byte { return b.data }

// Plain says that the batch is of no transaction.
func (h *Header) Plain() bool { return h.Attributes&(Transactional|Control) == 0 }

// Txn is what a record of the batch has to do with a transaction.
func (b *Batch) Txn(r *Record) (storage.Txn, error) {
	if b.Plain() {
		return storage.Txn{}, nil
	}
	t := storage.Txn{Producer: b.ProducerID, Epoch: b.ProducerEpoch, Kind: storage.Pending}
	if b.Attributes&Control == 0 {
		return t, nil
	}
	var err error
	if t.Kind, err = storage.ControlKind(r.Key); err != nil {
		return t, fmt.Errorf("record batch at position %d: offset %d: %w", b.pos, r.Offset, err)
	}
	return t, nil
}

// Parse reads the batch at the start of data. pos is where data lies in its
// file, for the error. What follows the batch is left alone: the next one
// begins len(b.Bytes()) further on.
//
// Data that ends inside the batch gives an error that is also
// io.ErrUnexpectedEOF, since a log that was being written may end like this.
func Parse(data []byte, pos int64) (Batch, error) {
	if len(data) < HeaderSize {
		return Batch{}, cutShort(pos, len(data), HeaderSize)
	}
	if m := data[atMagic]; m != 2 {
		return Batch{}, corrupt(pos, "magic %d where 2 is expected", m)
	}
	length := int64(int32(binary.BigEndian.Uint32(data[atLength:])))
	size := length + lengthCountsFrom
	if size < HeaderSize {
		return Batch{}, corrupt(pos, "length %d is less than a header's", length)
	}
	if size > int64(len(data)) {
		return Batch{}, cutShort(pos, len(data), size)
	}
	data = data[:size:size]
	stored, actual := binary.BigEndian.Uint32(data[atCRC:]), crc32.Checksum(data[atAttributes:], castagnoli)
	if stored != actual {
		return Batch{}, corrupt(pos, "checksum %08x where %08x is stored", actual, stored)
	}
	b := Batch{Header: readHeader(data), data: data, pos: pos}
	if b.Count < 0 || b.LastOffsetDelta < 0 || b.BaseOffset < 0 || b.NextOffset() < b.BaseOffset {
		return Batch{}, corrupt(pos, "base offset %d, last offset delta %d, %d records", b.BaseOffset, b.LastOffsetDelta, b.Count)
	}
	return b, nil
}

func readHeader(data []byte) Header {
	be := binary.BigEndian
	return Header{
		BaseOffset:      int64(be.Uint64(data)),
		LeaderEpoch:     int32(be.Uint32(data[atLeaderEpoch:])),
		Attributes:      int16(be.Uint16(data[atAttributes:])),
		LastOffsetDelta: int32(be.Uint32(data[atLastDelta:])),
		BaseTimestamp:   int64(be.Uint64(data[atBaseTimestamp:])),
		MaxTimestamp:    int64(be.Uint64(data[atMaxTimestamp:])),
		ProducerID:      int64(be.Uint64(data[atProducerID:])),
		ProducerEpoch:   int16(be.Uint16(data[atProducerEpoch:])),
		BaseSequence:    int32(be.Uint32(data[atBaseSequence:])),
		Count:           int32(be.Uint32(data[atCount:])),
	}
}

// finish writes the header before the records that already follow it.
func finish(data []byte, h *Header) {
	be := binary.BigEndian
	be.PutUint64(data, uint64(h.BaseOffset))
	be.PutUint32(data[atLength:], uint32(len(data)-lengthCountsFrom))
	be.PutUint32(data[atLeaderEpoch:], uint32(h.LeaderEpoch))
	data[atMagic] = 2
	be.PutUint16(data[atAttributes:], uint16(h.Attributes))
	be.PutUint32(data[atLastDelta:], uint32(h.LastOffsetDelta))
	be.PutUint64(data[atBaseTimestamp:], uint64(h.BaseTimestamp))
	be.PutUint64(data[atMaxTimestamp:], uint64(h.MaxTimestamp))
	be.PutUint64(data[atProducerID:], uint64(h.ProducerID))
	be.PutUint16(data[atProducerEpoch:], uint16(h.ProducerEpoch))
	be.PutUint32(data[atBaseSequence:], uint32(h.BaseSequence))
	be.PutUint32(data[atCount:], uint32(h.Count))
	be.PutUint32(data[atCRC:], crc32.Checksum(data[atAttributes:], castagnoli))
}

func corrupt(pos int64, format string, args ...any) error {
	return fmt.Errorf("%w: record batch at position %d: %s", storage.ErrCorrupt, pos, fmt.Sprintf(format, args...))
}

func cutShort(pos int64, have int, want int64) error {
	return fmt.Errorf("%w: record batch at position %d: %d bytes of %d: %w", storage.ErrCorrupt, pos, have, want, io.ErrUnexpectedEOF)
}
