package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// A rewrite puts what a target reads in the place of what it does not. It goes from
// shard to shard, and in each through the shard's own machine, batch by batch: to a
// group it is one request among others. It begins after the version was lowered, so
// that what is written meanwhile needs none.
//
// It can end anywhere. What has been rewritten needs no rewriting, so a shard that was
// not finished is gone through again; which ones are is in the ledger. A shard is
// finished when a pass over it finds nothing more, and its log has been purged.

const (
	// Bounds of what is read and reported at once, with one sync of the report.
	chunkRecords = 2048
	chunkBytes   = 1 << 20
	// Records of a chunk that are written at once.
	batchRecords = 64
	// stretch is how long a rewrite works without a rest, and longest how long that is at most.
	stretch = 2 * time.Millisecond
	longest = 200 * time.Millisecond
)

// rest is how long a rewrite rests, in times that it worked, so that groups are served about as
// fast as ever. Only tests are in a hurry.
var rest = 10

// again is how long a shard that has something pending is left alone.
const again = time.Second

var errStopped = errors.New("coordinator: the node is closing")

// RewriteStatus tells of a rewrite.
type RewriteStatus struct {
	From, To   string
	Began      time.Time
	Forced     bool
	Checkpoint string
	// CheckpointBytes is the size that it had.
	CheckpointBytes int64
	Report          string
	Shards, Of      int   // finished
	Planned         int64 // records to rewrite and to delete
	Rewritten       int64 // with those before a restart, of which a chunk may be missing after a crash
	Deleted         int64
	Lost            map[string]int64 // records by what they lost
	Waiting         int              // shards that wait for the transactions in them to end
	Problem         string           // why it does not go on; it is tried again
}

// Rewriting tells of the rewrite under way, or else of the last one.
func (n *Node) Rewriting() (s RewriteStatus, under bool) {
	v := &n.versions
	v.mu.Lock()
	defer v.mu.Unlock()
	r, of := v.ledger.Rewrite, len(n.shards)+len(n.txns)
	if under = r != nil; !under {
		if r = v.ledger.Last; r == nil {
			return RewriteStatus{}, false
		}
	}
	r = r.clone()
	s = RewriteStatus{
		From: r.From, To: r.To, Began: r.Began, Forced: r.Forced, Checkpoint: r.Checkpoint, CheckpointBytes: r.Bytes, Report: r.Report,
		Shards: len(r.Done), Of: of, Planned: r.Planned, Rewritten: r.Rewritten, Deleted: r.Deleted, Lost: r.Lost,
	}
	if v.status != nil {
		s.Waiting, s.Problem = v.status.Waiting, v.status.Problem
	}
	return s, under
}

// AwaitRewrite waits until no rewrite is under way.
func (n *Node) AwaitRewrite(ctx context.Context) error {
	n.versions.mu.Lock()
	ended := n.versions.ended
	n.versions.mu.Unlock()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		if _, under := n.Rewriting(); under {
			return errStopped
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startRewrite goes on with the rewrite that the ledger has, if it has one.
func (n *Node) startRewrite() {
	v := &n.versions
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ledger.Rewrite == nil {
		return
	}
	v.status, v.ended = &RewriteStatus{}, make(chan struct{})
	ended := v.ended
	n.done.Go(func() {
		defer close(ended)
		n.rewrite()
	})
}

// rewrite finishes every shard.
func (n *Node) rewrite() {
	v := &n.versions
	v.mu.Lock()
	r := v.ledger.Rewrite.clone()
	v.mu.Unlock()
	w, err := n.newRewriter(r)
	for ; err != nil; w, err = n.newRewriter(r) {
		n.o.Log.Warn().Err(err).Msg("the rewrite cannot go on now; it is tried again")
		n.hold(0, err)
		if !n.sleep(again) {
			return
		}
	}
	defer w.report.close()
	stores := n.stores()
	for {
		waiting, problem := 0, error(nil)
		for _, s := range stores {
			if slices.Contains(w.r.Done, s.id) {
				continue
			}
			before := w.r.Rewritten + w.r.Deleted
			finished, err := w.store(s)
			if err == nil && finished {
				w.r.Done = append(w.r.Done, s.id)
				w.report.finished(s.id)
				if w.r.Rewritten+w.r.Deleted > before { // else it may as well be gone through again
					err = n.noteRewrite(w.r, false)
				}
			}
			switch {
			case n.stopped():
				return
			case err != nil:
				problem = err
				n.o.Log.Warn().Err(err).Int32("shard", int32(s.id)).Msg("a shard could not be rewritten now; it is tried again")
			case !finished:
				waiting++
			}
		}
		if len(w.r.Done) == len(stores) {
			break
		}
		n.hold(waiting, problem)
		if !n.sleep(again) {
			return
		}
	}
	if err := n.noteRewrite(w.r, true); err != nil {
		n.o.Log.Error().Err(err).Msg("the end of the rewrite could not be stored; at the next start it is looked for once more")
		return
	}
	n.auditEnd(w.r)
}

func (n *Node) stopped() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// sleep returns false when the node stops first.
func (n *Node) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-n.stop:
		return false
	case <-t.C:
		return true
	}
}

// hold notes why a rewrite does not go on.
func (n *Node) hold(waiting int, problem error) {
	n.versions.mu.Lock()
	defer n.versions.mu.Unlock()
	n.versions.status.Waiting, n.versions.status.Problem = waiting, ""
	if problem != nil {
		n.versions.status.Problem = problem.Error()
	}
}

// noteRewrite makes durable how far the rewrite is.
func (n *Node) noteRewrite(r *rewriteRecord, ended bool) error {
	v := &n.versions
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.ledger.with(n.Finalized())
	l.Rewrite = r.clone()
	if ended {
		l.Rewrite, l.Last = nil, l.Rewrite
	}
	if err := l.write(n.o.Backend, n.stop); err != nil {
		return err
	}
	v.ledger = l
	if ended {
		*v.status = RewriteStatus{}
	}
	return nil
}

// rewriter is a rewrite under way.
type rewriter struct {
	n      *Node
	keeper storage.Keeper
	rw     *metadataversion.Rewriter
	r      *rewriteRecord
	report *report
	rested time.Time // when it last did
}

func (n *Node) newRewriter(r *rewriteRecord) (*rewriter, error) {
	keeper, err := n.keeper()
	if err != nil {
		return nil, err
	}
	release, err := metadataversion.ParseTarget(r.Release)
	if err != nil {
		return nil, err
	}
	to := n.Finalized().Target()
	to.Release = release.Release
	report, err := openReport(r)
	if err != nil {
		return nil, fmt.Errorf("the report of what is lost: %w", err)
	}
	return &rewriter{n, keeper, metadataversion.NewRewriter(to), r, report, time.Now()}, nil
}

// pause rests when it is time to.
func (w *rewriter) pause() error {
	worked := time.Since(w.rested)
	if worked < stretch {
		return nil
	}
	if !w.n.sleep(min(time.Duration(rest)*worked, longest)) {
		return errStopped
	}
	w.rested = time.Now()
	return nil
}

// store rewrites one shard. It is not finished where transactions in it have to end first.
func (w *rewriter) store(s *store) (finished bool, err error) {
	// What was decided under the old version is durable from here on, so that passes see it.
	if err := settle([]*store{s}); err != nil {
		return false, err
	}
	w.rested = time.Now() // waiting is no work
	for range 3 {
		p := pass{rewriter: w, s: s, scratch: make([]byte, 0, 64<<10)}
		if err := p.run(); err != nil {
			return false, err
		}
		if p.found > 0 {
			continue
		}
		if p.pending > 0 {
			return false, nil
		}
		if err := w.keeper.Purge(s.id, func(key []byte) bool { return !w.rw.ReadsTombstone(s.log, key) }); err != nil {
			return false, err
		}
		return true, w.pause()
	}
	return false, nil
}

// pass goes once through a shard.
type pass struct {
	*rewriter
	s       *store
	found   int // records that need rewriting
	pending int // those that are pending, which nobody may touch

	items   []item
	bytes   int
	scratch []byte
}

func (p *pass) run() error {
	p.report.clear()
	err := p.keeper.Latest(p.s.id, func(at storage.Offset, rec storage.Record) error {
		if p.n.stopped() {
			return errStopped
		}
		if rec.Value == nil {
			return nil // purged, where it does harm
		}
		if err := p.visit(at, rec); err != nil {
			return err
		}
		return p.pause()
	})
	if err != nil {
		return err
	}
	return p.flush()
}

func (p *pass) visit(at storage.Offset, rec storage.Record) error {
	res := p.rw.Rewrite(p.scratch[:0], p.s.log, rec.Key, rec.Value)
	if res.Action == metadataversion.Keep {
		return nil
	}
	if rec.Txn.Kind == storage.Pending {
		p.pending++
		return nil
	}
	p.found++
	it := item{at: at, key: bytes.Clone(rec.Key), value: res.Value, deleted: res.Action == metadataversion.Delete}
	if it.deleted {
		it.value = rec.Value
	}
	it.value = append([]byte{}, it.value...)
	if res.Lost != 0 {
		if err := p.report.add(newLoss(p.s, at, rec, res)); err != nil {
			return err
		}
	}
	p.items = append(p.items, it)
	p.bytes += len(it.key) + len(it.value)
	if len(p.items) < chunkRecords && p.bytes < chunkBytes {
		return nil
	}
	return p.flush()
}

// flush writes what is lost to the report, then has the shard write the chunk in batches. What a
// crash between the two leaves in the report is not lost, and is lost then.
func (p *pass) flush() error {
	if len(p.items) == 0 {
		return nil
	}
	if err := p.report.sync(p.r.Lost); err != nil {
		return fmt.Errorf("the report of what is lost: %w", err)
	}
	for batch := range slices.Chunk(p.items, batchRecords) {
		if err := p.pause(); err != nil {
			return err
		}
		if err := p.write(batch); err != nil {
			return err
		}
	}
	p.items, p.bytes = p.items[:0], 0
	return p.n.noteRewrite(p.r, false)
}

// write has the shard write a batch, and waits until it is durable.
func (p *pass) write(batch []item) error {
	var mu sync.Mutex
	var sent sync.WaitGroup
	var failed error
	for from := 0; from < len(batch); {
		entity, has := p.s.entity(batch[from].key)
		to := from + 1
		for to < len(batch) {
			if next, also := p.s.entity(batch[to].key); next != entity || also != has {
				break
			}
			to++
		}
		sent.Add(1)
		items := batch[from:to]
		p.s.send(entity, !has, items, func(written int, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			if err == nil && written == len(items) {
				p.report.gone(p.s.id, items)
			}
			sent.Done()
		})
		from = to
	}
	sent.Wait()
	if failed != nil {
		return failed
	}
	for _, it := range batch {
		if it.deleted {
			p.r.Deleted++
		} else {
			p.r.Rewritten++
		}
	}
	return nil
}
