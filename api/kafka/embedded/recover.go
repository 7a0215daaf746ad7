package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// recoverFolder has the broker go on with transactions where it stopped, killed or not.
//
// kfake takes itself for their coordinator. So what was open when it was killed it takes
// for aborted, though the coordinator in front of it may go on with the transaction, or
// may have decided to commit it. And what was closed by markers from outside it does not
// know to be closed, and opens again when it starts after an orderly end. It also forgets, when
// killed, which batches it has, so that one which is sent again is written twice.
//
// All three follow from its logs, as they do in Kafka's brokers. Here they are read before
// it starts, and what it would itself have written at its end is written anew: the
// snapshot of each partition, which transactions are open, and the latest batches of each
// producer.
func recoverFolder(dir string) error {
	var meta struct {
		Version int `json:"version"`
	}
	if found, err := readJSON(filepath.Join(dir, "meta.json"), &meta); err != nil || !found {
		return err
	}
	if meta.Version != layoutVersion {
		return fmt.Errorf("embedded: the folder %s is of version %d of kfake's layout, and this one knows %d", dir, meta.Version, layoutVersion)
	}
	folders, err := os.ReadDir(filepath.Join(dir, "partitions"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	all := &recovered{open: map[int64]map[string]map[int32]int64{}}
	for _, f := range folders {
		at := strings.LastIndexByte(f.Name(), '-')
		n, err := strconv.ParseInt(f.Name()[at+1:], 10, 32)
		topic, err2 := unescape(f.Name()[:max(at, 0)])
		if !f.IsDir() || at < 0 || err != nil || err2 != nil {
			continue
		}
		p := &partition{dir: filepath.Join(dir, "partitions", f.Name()), open: map[int64]int64{}, windows: map[int64]*seqWindow{}}
		if err := p.read(); err != nil {
			return fmt.Errorf("embedded: partition %s: %w", f.Name(), err)
		}
		if err := p.writeSnapshot(); err != nil {
			return fmt.Errorf("embedded: partition %s: %w", f.Name(), err)
		}
		all.add(topic, int32(n), p)
	}
	return all.write(dir)
}

// layoutVersion is that of kfake's files, as of the version in go.mod.
const layoutVersion = 1

// recovered is what the logs of all partitions tell.
type recovered struct {
	open    map[int64]map[string]map[int32]int64 // by producer, topic and partition: where its transaction began
	windows []seqWindow
}

func (r *recovered) add(topic string, n int32, p *partition) {
	for id, from := range p.open {
		if r.open[id] == nil {
			r.open[id] = map[string]map[int32]int64{}
		}
		if r.open[id][topic] == nil {
			r.open[id][topic] = map[int32]int64{}
		}
		r.open[id][topic][n] = from
	}
	for id, w := range p.windows {
		w.PID, w.Topic, w.Part = id, topic, n
		r.windows = append(r.windows, *w)
	}
}

// openTxn is a transaction that is open, as kfake writes it.
type openTxn struct {
	PID                int64                      `json:"pid"`
	TxStart            time.Time                  `json:"txStart"`
	TxPartFirstOffsets map[string]map[int32]int64 `json:"txPartFirstOffsets"`
}

func (r *recovered) write(dir string) error {
	// Of what else is in the session, nothing is changed: it is there after an orderly end alone.
	session := map[string]json.RawMessage{}
	file := filepath.Join(dir, "session_state.json")
	if _, err := readJSON(file, &session); err != nil {
		return err
	}
	now := time.Now()
	open := make([]openTxn, 0, len(r.open))
	for id, where := range r.open {
		open = append(open, openTxn{id, now, where})
	}
	var err error
	if session["inProgressTxns"], err = json.Marshal(open); err != nil {
		return err
	}
	if session["shutdownAt"] == nil {
		if session["shutdownAt"], err = json.Marshal(now); err != nil {
			return err
		}
	}
	return errors.Join(
		writeJSON(file, session),
		writeJSON(filepath.Join(dir, "seq_windows.json"), seqWindows{layoutVersion, r.windows}),
	)
}

// snapshot is a partition's, as kfake writes it.
type snapshot struct {
	Version          int           `json:"version"`
	HighWatermark    int64         `json:"high_watermark"`
	LastStableOffset int64         `json:"last_stable_offset"`
	LogStartOffset   int64         `json:"log_start_offset"`
	Epoch            int32         `json:"epoch"`
	LeaderNode       int32         `json:"leader_node,omitempty"`
	MaxTimestamp     int64         `json:"max_timestamp"`
	CreatedAt        time.Time     `json:"created_at"`
	AbortedTxns      []abortedTxn  `json:"aborted_txns,omitempty"`
	Segments         []segmentInfo `json:"segments"`
}

type abortedTxn struct {
	ProducerID  int64 `json:"producer_id"`
	FirstOffset int64 `json:"first_offset"`
	LastOffset  int64 `json:"last_offset"`
}

type segmentInfo struct {
	BaseOffset int64 `json:"base_offset"`
	Size       int64 `json:"size"`
	MinEpoch   int32 `json:"min_epoch,omitempty"`
	MaxEpoch   int32 `json:"max_epoch,omitempty"`
}

// partition is what one log tells.
type partition struct {
	dir      string
	segments []segmentInfo
	some     bool // there is a batch
	first    batch
	end      int64
	epoch    int32
	open     map[int64]int64
	aborted  []abortedTxn
	windows  map[int64]*seqWindow
}

// read reads the segments, and cuts off what was not written whole: nobody was told of it.
func (p *partition) read() error {
	files, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	var bases []int64
	for _, f := range files {
		if name, is := strings.CutSuffix(f.Name(), ".dat"); is {
			if base, err := strconv.ParseInt(name, 10, 64); err == nil {
				bases = append(bases, base)
			}
		}
	}
	slices.Sort(bases)
	for _, base := range bases {
		if err := p.readSegment(base); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) readSegment(base int64) error {
	file := filepath.Join(p.dir, strconv.FormatInt(base, 10))
	raw, err := os.ReadFile(file + ".dat")
	if err != nil {
		return err
	}
	index, err := os.ReadFile(file + ".idx")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info := segmentInfo{BaseOffset: base}
	batches := 0
	for (batches+1)*indexEntry <= len(index) {
		b, size := parseBatch(raw[info.Size:])
		if size == 0 {
			break
		}
		epoch := int32(binary.LittleEndian.Uint32(index[batches*indexEntry+2:]))
		if batches == 0 {
			info.MinEpoch = epoch
		}
		info.MinEpoch, info.MaxEpoch = min(info.MinEpoch, epoch), max(info.MaxEpoch, epoch)
		p.take(b, epoch)
		batches++
		info.Size += int64(size)
	}
	p.segments = append(p.segments, info)
	if info.Size == int64(len(raw)) && batches*indexEntry == len(index) {
		return nil
	}
	return errors.Join(os.Truncate(file+".dat", info.Size), os.Truncate(file+".idx", int64(batches*indexEntry)))
}

// indexEntry is the length of an entry of kfake's index, one a batch; the leader epoch is in it.
const indexEntry = 15

// take takes in the next batch.
func (p *partition) take(b batch, epoch int32) {
	if !p.some {
		p.some, p.first = true, b
	}
	p.end, p.epoch = b.offset+int64(b.lastDelta)+1, epoch
	switch {
	case b.control:
		if from, open := p.open[b.producer]; open && b.abort {
			p.aborted = append(p.aborted, abortedTxn{b.producer, from, b.offset})
		}
		delete(p.open, b.producer)
		return
	case b.producer < 0:
		return
	case b.transactional:
		if _, open := p.open[b.producer]; !open {
			p.open[b.producer] = b.offset
		}
	}
	w := p.windows[b.producer]
	if w == nil {
		w = &seqWindow{}
		p.windows[b.producer] = w
	}
	w.take(b)
}

func (p *partition) writeSnapshot() error {
	file := filepath.Join(p.dir, "snapshot.json")
	var s snapshot
	if _, err := readJSON(file, &s); err != nil {
		s = snapshot{} // cut short: what it says beyond the log is lost
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = time.UnixMilli(p.first.time)
	}
	s.Version, s.Segments, s.AbortedTxns = layoutVersion, p.segments, p.aborted
	if !p.some { // retention or a deletion of records has emptied it, or nothing was ever written
		s.LastStableOffset = s.HighWatermark
		return writeJSON(file, s)
	}
	s.HighWatermark, s.Epoch = p.end, max(p.epoch, s.Epoch)
	s.LogStartOffset = min(max(s.LogStartOffset, p.first.offset), p.end)
	s.LastStableOffset = p.end
	for _, from := range p.open {
		s.LastStableOffset = min(s.LastStableOffset, from)
	}
	return writeJSON(file, s)
}
