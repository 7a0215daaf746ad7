package coordinator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// loss is a line of a report: a record as it was, and what it does not say any more.
type loss struct {
	Log       string          `json:"log"`
	Partition int32           `json:"partition"`
	Offset    storage.Offset  `json:"offset"`
	Entity    string          `json:"entity,omitempty"` // group or transactional id
	Type      string          `json:"type"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Lost      []string        `json:"lost"`
	Action    string          `json:"action"`
	Problem   string          `json:"problem,omitempty"`

	shard storage.ShardID
}

func newLoss(s *store, at storage.Offset, rec storage.Record, res metadataversion.Result) loss {
	entity, _ := s.entity(rec.Key)
	typ, key, value := metadataversion.Describe(s.log, rec.Key, rec.Value)
	l := loss{
		Log: s.log.String(), Partition: s.partition, Offset: at, Entity: entity, Type: typ, Key: key, Value: value,
		Lost: res.Lost.Names(), Action: res.Action.String(), shard: s.id,
	}
	if res.Problem != nil {
		l.Problem = res.Problem.Error()
	}
	return l
}

// place is a record's, by which a report tells it from others.
type place struct {
	shard storage.ShardID
	at    storage.Offset
}

// report is the file that says, a line a record, what a rewrite loses. It is there from the
// first loss on. A record is in it once, also when it had to be tried again or kcoord was
// killed meanwhile.
type report struct {
	path string // "": there is none
	f    *os.File
	size int64          // of the lines that are whole
	told map[place]bool // what is in it and may come again
	// What was added and is not in it, and the lines for it.
	next []loss
	buf  bytes.Buffer
}

// openReport goes on with the report of a rewrite that was begun before, if there is one, and
// counts anew what it tells of: the ledger may be a batch behind. What a crash has left of a
// line is written over.
func openReport(of *rewriteRecord) (*report, error) {
	r := &report{path: of.Report, told: map[place]bool{}}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		if of.Lost == nil {
			of.Lost = map[string]int64{}
		}
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	of.Lost = map[string]int64{}
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		r.size += int64(len(line))
		var l loss
		if json.Unmarshal(line, &l) != nil {
			continue // none of ours
		}
		count(of.Lost, l)
		if l.shard = storage.ShardID(l.Partition); l.Log == metadataversion.TransactionsLog.String() {
			l.shard += TxnShards
		}
		if !slices.Contains(of.Done, l.shard) {
			r.told[place{l.shard, l.Offset}] = true
		}
	}
	r.f = f
	return r, nil
}

// add takes in a loss, unless it is told of already. It is there when sync has returned.
func (r *report) add(l loss) error {
	if r.told[place{l.shard, l.Offset}] {
		return nil
	}
	r.next = append(r.next, loss{Type: l.Type, Lost: l.Lost, Offset: l.Offset, shard: l.shard})
	if r.path == "" {
		return nil
	}
	e := json.NewEncoder(&r.buf)
	e.SetEscapeHTML(false)
	return e.Encode(l)
}

// sync makes durable what was added, and counts it.
func (r *report) sync(lost map[string]int64) error {
	if err := r.append(); err != nil {
		return err
	}
	for _, l := range r.next {
		r.told[place{l.shard, l.Offset}] = true
		count(lost, l)
	}
	r.clear()
	return nil
}

// clear gives up what was added and is not durable.
func (r *report) clear() {
	r.next = r.next[:0]
	r.buf.Reset()
}

// gone forgets records that are not there any more.
func (r *report) gone(shard storage.ShardID, items []item) {
	for i := range items {
		delete(r.told, place{shard, items[i].at})
	}
}

// finished forgets what a shard had.
func (r *report) finished(shard storage.ShardID) {
	maps.DeleteFunc(r.told, func(p place, _ bool) bool { return p.shard == shard })
}

func count(lost map[string]int64, l loss) {
	for _, what := range l.Lost {
		lost[l.Type+" "+what]++
	}
}

func (r *report) append() error {
	if r.buf.Len() == 0 {
		return nil
	}
	if r.f == nil {
		if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		r.f = f
	}
	// At its place, so that what a full disk has left of a line is written over.
	if _, err := r.f.WriteAt(r.buf.Bytes(), r.size); err != nil {
		return err
	}
	if err := r.f.Sync(); err != nil {
		return err
	}
	r.size += int64(r.buf.Len())
	return nil
}

// close ends the report after the last whole line.
func (r *report) close() {
	if r.f != nil {
		_ = r.f.Truncate(r.size) // else the next to open it does
		r.f.Close()
	}
}

// features are the features whose levels change.
func (c *Changed) features() []string {
	var all []string
	for _, f := range metadataversion.Features() {
		if from, to := c.From.Levels[f], c.To.Levels[f]; from != to {
			all = append(all, fmt.Sprintf("%s %d to %d", f, from, to))
		}
	}
	return all
}

// audit says what is about to be done, and each reason why it had to be forced.
func (n *Node) audit(c *Changed) {
	log := n.o.Log.With().Str("audit", "downgrade").Logger()
	log.Warn().Stringer("from", c.From).Stringer("to", c.To).Strs("features", c.features()).Int64("records", c.Plan.Records).Int64("rewrite", c.Plan.Rewritten).
		Int64("delete", c.Plan.Deleted).Bool("forced", c.Plan.Lossy()).Str("checkpoint", c.Checkpoint).Int64("bytes", c.CheckpointBytes).
		Msg("a downgrade begins")
	for _, r := range c.Plan.Reasons() {
		log.Warn().Msgf("it is forced: %v", r)
	}
}

// auditEnd says what was lost.
func (n *Node) auditEnd(r *rewriteRecord) {
	log := n.o.Log.With().Str("audit", "downgrade").Logger()
	for _, what := range slices.Sorted(maps.Keys(r.Lost)) {
		log.Warn().Str("what", what).Int64("records", r.Lost[what]).Str("report", r.Report).Msg("lost by the downgrade")
	}
	log.Info().Str("from", r.From).Str("to", r.To).Int64("rewritten", r.Rewritten).Int64("deleted", r.Deleted).
		Msg("the downgrade is complete: every record is one that the target reads")
}
