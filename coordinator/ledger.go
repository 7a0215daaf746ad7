package coordinator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// NodeShard is the shard in which a node keeps what it knows of itself. It is no
// partition of a topic: nobody sees it through Kafka's protocol.
const NodeShard storage.ShardID = 1<<16 - 1

// ledgerKey is the key of the one record in it. Its first two bytes are the type of no
// record of Kafka's, so that every index takes it for an orphan.
var ledgerKey = []byte("kcoord.versions")

// ledgerFormat is that of the record's value, which is JSON.
const ledgerFormat = 1

// ledger is the finalized version and the rewrite under way, as they are stored: in the
// store, so that a checkpoint has both, and one record, so that they change together.
type ledger struct {
	Format   int              `json:"format"`
	Epoch    int64            `json:"epoch"` // one higher with each change of what is finalized
	Version  string           `json:"metadata.version"`
	Features map[string]int16 `json:"features"`
	Rewrite  *rewriteRecord   `json:"rewrite,omitempty"`
	Last     *rewriteRecord   `json:"last_rewrite,omitempty"` // the one that was finished last
}

// rewriteRecord is how far a rewrite is.
type rewriteRecord struct {
	From       string            `json:"from"`
	To         string            `json:"to"`
	Release    string            `json:"release"` // that is to read the records
	Began      time.Time         `json:"began"`
	Forced     bool              `json:"forced,omitempty"`
	Checkpoint string            `json:"checkpoint,omitempty"`
	Bytes      int64             `json:"checkpoint_bytes,omitempty"`
	Report     string            `json:"report,omitempty"`
	Planned    int64             `json:"planned,omitempty"` // records to rewrite and to delete
	Done       []storage.ShardID `json:"done,omitempty"`
	Rewritten  int64             `json:"rewritten"`
	Deleted    int64             `json:"deleted"`
	Lost       map[string]int64  `json:"lost,omitempty"` // records by what they lose
}

func (r *rewriteRecord) clone() *rewriteRecord {
	if r == nil {
		return nil
	}
	c := *r
	c.Done, c.Lost = slices.Clone(r.Done), maps.Clone(r.Lost)
	return &c
}

// Finalized is the version that records are written in, with the features' levels.
type Finalized struct {
	Version metadataversion.Version
	Levels  metadataversion.Levels
	Epoch   int64
}

// Target is what is finalized as where a change starts.
func (f Finalized) Target() metadataversion.Target {
	return metadataversion.TargetOf(f.Version).At(f.Levels)
}

func (f Finalized) writes() metadataversion.RecordVersions {
	return metadataversion.Writes(f.Version, f.Levels)
}

// finalized reads the ledger's version.
func (l *ledger) finalized() (Finalized, error) {
	f := Finalized{Epoch: l.Epoch}
	if l.Format != ledgerFormat {
		return f, fmt.Errorf("the finalized version is stored in format %d, this build knows %d: start the release of kcoord that wrote it, or a newer one", l.Format, ledgerFormat)
	}
	v, err := metadataversion.Parse(l.Version)
	if err != nil {
		return f, fmt.Errorf("the finalized version: %w: start the release of kcoord that wrote it, or a newer one", err)
	}
	f.Version = v
	for name, level := range l.Features {
		feature, known := metadataversion.FeatureByName(name)
		if !known || level > feature.Highest() {
			return f, fmt.Errorf("the finalized feature %s=%d is not known: start the release of kcoord that wrote it, or a newer one", name, level)
		}
		f.Levels[feature] = level
	}
	return f, nil
}

// with is the ledger with another version.
func (l *ledger) with(f Finalized) *ledger {
	out := &ledger{Format: ledgerFormat, Epoch: f.Epoch, Version: f.Version.String(), Features: map[string]int16{}}
	if l != nil {
		out.Rewrite, out.Last = l.Rewrite.clone(), l.Last.clone()
	}
	for _, feature := range metadataversion.Features() {
		out.Features[feature.String()] = f.Levels[feature]
	}
	return out
}

// readLedger returns the stored ledger, nil if there is none.
func readLedger(b storage.Backend) (*ledger, error) {
	log, err := b.Open(NodeShard, func(storage.Offset, error) {})
	if err != nil {
		return nil, err
	}
	var value []byte
	err = log.Read(0, func(_ storage.Offset, r storage.Record) error {
		value = slices.Clone(r.Value)
		return nil
	})
	if err != nil || value == nil {
		return nil, err
	}
	l := &ledger{}
	if err := json.Unmarshal(value, l); err != nil {
		return nil, fmt.Errorf("%w: the finalized version: %w", storage.ErrCorrupt, err)
	}
	return l, nil
}

// write stores the ledger, and returns when it is durable, or when stop is closed. It is rare,
// so it opens the log anew, which also ends what a failure has left.
func (l *ledger) write(b storage.Backend, stop <-chan struct{}) error {
	value, err := json.Marshal(l)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	tell := func(err error) {
		select {
		case told <- err:
		default:
		}
	}
	log, err := b.Open(NodeShard, func(_ storage.Offset, err error) { tell(err) }) // nothing else is pending
	if err == nil {
		err = log.Append([]storage.Record{{Key: ledgerKey, Value: value, Time: time.Now()}})
	}
	if err == nil {
		select {
		case err = <-told:
		case <-stop:
			err = errStopped
		}
	}
	if err != nil {
		return fmt.Errorf("the finalized version could not be stored: %w", err)
	}
	return nil
}
