package coordinator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// loss is a line of a report: a record, and what it does not say any more.
type loss struct {
	Log       string          `json:"log"`
	Partition int32           `json:"partition"`
	Entity    string          `json:"entity,omitempty"` // group or transactional id
	Type      string          `json:"type"`
	Key       json.RawMessage `json:"key"`
	Lost      []string        `json:"lost"`
	Action    string          `json:"action"`
	Problem   string          `json:"problem,omitempty"`
}

func newLoss(s *store, rec storage.Record, res metadataversion.Result) loss {
	entity, _ := s.entity(rec.Key)
	typ, key := metadataversion.Describe(s.log, rec.Key)
	l := loss{
		Log: s.log.String(), Partition: s.partition, Entity: entity, Type: typ, Key: key,
		Lost: res.Lost.Names(), Action: res.Action.String(),
	}
	if res.Problem != nil {
		l.Problem = res.Problem.Error()
	}
	return l
}

// report is the file that says, a line a record, what a rewrite loses. It is there from the
// first loss on.
type report struct {
	path string // "": there is none
	f    *os.File
}

func (r *report) write(losses []loss) error {
	if len(losses) == 0 || r.path == "" {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, l := range losses {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	if r.f == nil {
		if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		r.f = f
	}
	_, err := r.f.Write(b.Bytes())
	return errors.Join(err, r.f.Sync())
}

func (r *report) close() {
	if r.f != nil {
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
