package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"net/url"
	"os"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch is what is needed of a record batch's header.
type batch struct {
	offset                        int64
	lastDelta                     int32
	time                          int64
	producer                      int64
	epoch                         int16
	sequence, records             int32
	transactional, control, abort bool
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseBatch reads the first batch of a segment; size is 0 where there is no whole one.
func parseBatch(b []byte) (batch, int) {
	const header = 61
	if len(b) < header {
		return batch{}, 0
	}
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	size := 12 + length
	if size < header || size > int64(len(b)) {
		return batch{}, 0
	}
	b = b[:size]
	if crc32.Checksum(b[21:], castagnoli) != binary.BigEndian.Uint32(b[17:]) {
		return batch{}, 0
	}
	attributes := binary.BigEndian.Uint16(b[21:])
	out := batch{
		offset:        int64(binary.BigEndian.Uint64(b)),
		lastDelta:     int32(binary.BigEndian.Uint32(b[23:])),
		time:          int64(binary.BigEndian.Uint64(b[27:])),
		producer:      int64(binary.BigEndian.Uint64(b[43:])),
		epoch:         int16(binary.BigEndian.Uint16(b[51:])),
		sequence:      int32(binary.BigEndian.Uint32(b[53:])),
		records:       int32(binary.BigEndian.Uint32(b[57:])),
		transactional: attributes&0x10 != 0,
		control:       attributes&0x20 != 0,
	}
	if out.control {
		var r kmsg.Record
		err := r.ReadFrom(b[header:])
		out.abort = err != nil || len(r.Key) < 4 || binary.BigEndian.Uint16(r.Key[2:]) == 0
	}
	return out, int(size)
}

// seqWindows are the latest batches of producers, as kfake writes them.
type seqWindows struct {
	Version int         `json:"version"`
	Windows []seqWindow `json:"windows"`
}

type seqWindow struct {
	PID     int64       `json:"pid"`
	Topic   string      `json:"topic"`
	Part    int32       `json:"partition"`
	Entries [5]seqEntry `json:"entries"`
	Count   uint8       `json:"count"`
	At      uint8       `json:"at"`
	Epoch   int16       `json:"epoch"`
	Seen    bool        `json:"seen"`
	NextSeq int32       `json:"next_seq"`
}

type seqEntry struct {
	FirstSeq int32 `json:"first_seq"`
	NextSeq  int32 `json:"next_seq"`
	Offset   int64 `json:"offset"`
}

// take is kfake's own pushAndValidate for a batch that it has accepted.
func (w *seqWindow) take(b batch) {
	if !w.Seen || b.epoch != w.Epoch {
		*w = seqWindow{Seen: true, Epoch: b.epoch}
	}
	w.NextSeq = int32((int64(b.sequence) + int64(b.records)) % math.MaxInt32)
	w.Entries[w.At] = seqEntry{b.sequence, w.NextSeq, b.offset}
	w.At = (w.At + 1) % 5
	w.Count = min(w.Count+1, 5)
}

func unescape(s string) (string, error) { return url.PathUnescape(s) }

func readJSON(file string, into any) (found bool, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(b, into)
}

// writeJSON replaces a file. It need not be synced: what it holds follows from the logs.
func writeJSON(file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".tmp", b, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".tmp", file)
}
