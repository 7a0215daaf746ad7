package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// Errors of a change of versions.
var (
	// ErrRewriting says that records are still being rewritten for another version.
	ErrRewriting = errors.New("records are still being rewritten for the version that was set last")
	// ErrNoTransactions says that the finalized version is one before there were transactions.
	ErrNoTransactions = errors.New("the finalized metadata.version is one before 0.11.0, which has no transactions")
	// ErrNoCheckpoint says that there is no place for the checkpoint that a change needs first.
	ErrNoCheckpoint = errors.New("this coordinator has no folder for checkpoints, without which nothing is given up")
)

// Lossy refuses a change that would lose something.
type Lossy struct{ Plan *metadataversion.Plan }

func (l *Lossy) Error() string {
	return fmt.Sprintf("going from %s to %s would lose what is stored: %v", l.Plan.From, l.Plan.To, l.Plan.Err())
}

// Unwrap makes errors.Is(err, metadataversion.ErrLossy) hold.
func (l *Lossy) Unwrap() error { return l.Plan.Err() }

// versions are the finalized version and what changes it.
type versions struct {
	changing  sync.Mutex // one change at a time, from plan to start
	finalized atomic.Pointer[Finalized]

	mu     sync.Mutex
	ledger *ledger // as it is stored
	status *RewriteStatus
	ended  chan struct{} // closed when the rewrite under way has ended
}

// Finalized is what is written now.
func (n *Node) Finalized() Finalized { return *n.versions.finalized.Load() }

// openVersions reads what is finalized, or finalizes the latest: from then on a later
// build writes no more than that until it is told to.
func (n *Node) openVersions() error {
	l, err := readLedger(n.o.Backend)
	if err != nil {
		return err
	}
	f := Finalized{Version: metadataversion.Latest, Levels: metadataversion.Defaults(metadataversion.Latest), Epoch: 1}
	if l == nil {
		l = l.with(f)
		err = l.write(n.o.Backend, n.stop)
	} else {
		f, err = l.finalized()
	}
	if err != nil {
		return err
	}
	n.versions.ledger = l
	n.versions.finalized.Store(&f)
	return nil
}

// Change says what to do and how.
type Change struct {
	To metadataversion.Target
	// Force gives up what cannot be kept; a checkpoint is taken first.
	Force bool
	// DryRun changes nothing.
	DryRun bool
	// Progress is told of the plan's, now and then. May be nil.
	Progress func(Progress)
}

// Progress is how far a pass over what is stored is.
type Progress struct {
	Shards, Of int
	Records    int64
}

// Changed is what came of a change. Where records have to be rewritten, that goes on in the
// background: see Rewriting.
type Changed struct {
	From, To metadataversion.Target
	Plan     *metadataversion.Plan // nil where nothing is lowered
	// Checkpoint is the folder of the checkpoint, "" if none was needed, and CheckpointBytes its size.
	Checkpoint      string
	CheckpointBytes int64
	Report          string // where what is lost is written to
	Rewriting       bool
}

// Lowers says whether going to a target takes something away.
func Lowers(from, to metadataversion.Target) bool {
	if to.Version < from.Version || to.Version == from.Version && to.Release.Patch >= 0 {
		return true
	}
	for f, level := range to.Levels {
		if level < from.Levels[f] {
			return true
		}
	}
	return false
}

// Change sets the finalized version and features. Where something is lowered it plans
// first, and refuses with a *Lossy what would lose anything, unless forced. What was set
// before is set again without harm.
func (n *Node) Change(ctx context.Context, c Change) (*Changed, error) {
	if err := c.To.Levels.Check(c.To.Version); err != nil {
		return nil, err
	}
	v := &n.versions
	v.changing.Lock()
	defer v.changing.Unlock()
	done := &Changed{From: n.Finalized().Target(), To: c.To}
	if status, under := n.Rewriting(); under {
		if status.To != c.To.String() || n.Finalized().Levels != c.To.Levels {
			return nil, fmt.Errorf("%w: going to %s", ErrRewriting, status.To)
		}
		done.Checkpoint, done.CheckpointBytes, done.Report, done.Rewriting = status.Checkpoint, status.CheckpointBytes, status.Report, true
		return done, nil
	}
	if !Lowers(done.From, c.To) {
		if c.DryRun || done.From == c.To {
			return done, nil
		}
		return done, n.finalize(c.To, nil)
	}
	if err := n.planFor(ctx, c, done); err != nil || c.DryRun {
		return done, err
	}
	return done, n.lower(ctx, c, done)
}

// planFor plans, and refuses what would lose something unless it is forced.
func (n *Node) planFor(ctx context.Context, c Change, done *Changed) (err error) {
	done.Plan, err = n.PlanDowngrade(ctx, c.To, c.Progress)
	if err == nil && done.Plan.Lossy() && !c.Force {
		err = &Lossy{done.Plan}
	}
	return err
}

// lower plans again while everything is written as the target wants it, so that nothing which
// would be lost comes in after the plan and the checkpoint. If it does not go ahead, records
// are written as before.
func (n *Node) lower(ctx context.Context, c Change, done *Changed) error {
	lowered, stores := Finalized{Version: c.To.Version, Levels: c.To.Levels}, n.stores()
	for _, s := range stores {
		s.write(lowered)
	}
	err := settle(stores)
	if err == nil {
		err = n.planFor(ctx, c, done)
	}
	if err == nil {
		err = n.begin(done)
	}
	if err != nil {
		for _, s := range stores {
			s.write(n.Finalized())
		}
	}
	return err
}

// settle waits until all that was decided in shards is durable.
func settle(stores []*store) (err error) {
	for _, s := range stores {
		told := make(chan error, 1)
		s.send("", true, nil, func(_ int, err error) { told <- err })
		err = errors.Join(err, <-told)
	}
	return err
}

// begin takes the checkpoint, if something will be lost, and begins the rewrite.
func (n *Node) begin(c *Changed) error {
	now := time.Now().UTC()
	r := &rewriteRecord{
		From: c.From.String(), To: c.To.String(), Release: c.To.Release.String(), Began: now, Planned: c.Plan.Rewritten + c.Plan.Deleted,
	}
	if n.o.Downgrades != "" {
		name := fmt.Sprintf("%s-%s-to-%s", now.Format("20060102T150405.000Z"), c.From.Version, c.To.Version)
		r.Report = filepath.Join(n.o.Downgrades, name, "report.jsonl")
		if c.Plan.Lossy() {
			r.Checkpoint = filepath.Join(n.o.Downgrades, name, "checkpoint")
		}
	}
	if r.Forced = c.Plan.Lossy(); r.Forced {
		if n.o.Checkpoint == nil || r.Checkpoint == "" {
			return ErrNoCheckpoint
		}
		var err error
		if r.Bytes, err = n.o.Checkpoint(r.Checkpoint); err != nil {
			_ = os.Remove(filepath.Dir(r.Checkpoint)) // empty, unless somebody put something there
			return noCheckpoint(err)
		}
		c.Checkpoint, c.CheckpointBytes = r.Checkpoint, r.Bytes
	}
	c.Report, c.Rewriting = r.Report, true
	n.audit(c)
	return n.finalize(c.To, r)
}

// noCheckpoint says what to do about a checkpoint that failed.
func noCheckpoint(err error) error {
	remedy := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = ": free some space there"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = ": let kcoord write there"
	}
	return fmt.Errorf("nothing was changed, since no checkpoint could be taken: %w%s", err, remedy)
}

// finalize makes a version durable, and then what is written; at last the rewrite
// begins, if there is one. What was decided before is written as it was.
func (n *Node) finalize(to metadataversion.Target, r *rewriteRecord) error {
	v := &n.versions
	f := Finalized{Version: to.Version, Levels: to.Levels, Epoch: n.Finalized().Epoch + 1}
	v.mu.Lock()
	l := v.ledger.with(f)
	l.Rewrite = r
	err := l.write(n.o.Backend, n.stop)
	if err == nil {
		v.ledger = l
		v.finalized.Store(&f)
	}
	v.mu.Unlock()
	if err != nil {
		return err
	}
	n.o.Log.Info().Str("audit", "versions").Stringer("version", f.Version).Int64("epoch", f.Epoch).Msg("the finalized version has changed")
	for _, s := range n.stores() {
		s.write(f)
	}
	if r != nil {
		n.startRewrite()
	}
	return nil
}

// PlanDowngrade finds out what a downgrade would do, in one pass over what is stored.
func (n *Node) PlanDowngrade(ctx context.Context, to metadataversion.Target, progress func(Progress)) (*metadataversion.Plan, error) {
	keeper, err := n.keeper()
	if err != nil {
		return nil, err
	}
	p := metadataversion.NewPlanner(n.Finalized().Target(), to)
	stores := n.stores()
	var records int64
	for i, s := range stores {
		err := keeper.Latest(s.id, func(_ storage.Offset, r storage.Record) error {
			if records++; records%4096 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				if progress != nil {
					progress(Progress{i, len(stores), records})
				}
			}
			p.Visit(s.log, s.partition, r.Key, r.Value)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if progress != nil {
		progress(Progress{len(stores), len(stores), records})
	}
	return p.Plan(), nil
}

var errNoKeeper = errors.New("coordinator: this backend cannot be looked at as a whole")

func (n *Node) keeper() (storage.Keeper, error) {
	k, is := n.o.Backend.(storage.Keeper)
	if !is {
		return nil, errNoKeeper
	}
	return k, nil
}
