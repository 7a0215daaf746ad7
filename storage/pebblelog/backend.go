package pebblelog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/recordlog"
)

// Backend holds the logs of all shards in one pebble database.
type Backend struct {
	dir   string
	index storage.Index
	opts  Options
	db    *pebble.DB
	lock  io.Closer

	committer queue[*shard] // shards with a pending set
	notifier  queue[note]   // what is durable and not yet told
	folder    queue[*shard] // shards whose tail is long
	cleaner   queue[*shard] // shards with much that is superseded
	tails     atomic.Int64  // bytes of all shards' logs that are not folded

	compactions compactions
	rested      *time.Timer // begins compactions

	builders sync.Pool // *recordlog.Builder: of sets that have several batches

	commitCount atomic.Int64 // synced commits, for the benchmarks
	counts      counters

	commits, folds, cleanings sync.WaitGroup // one goroutine each
	notifies                  sync.WaitGroup

	failOnce sync.Once
	failure  atomic.Pointer[error]
	wedged   atomic.Bool // pebble panicked with a lock held: it cannot be closed
	stopping atomic.Bool // Close has begun: cleaning can wait
	opening  atomic.Bool // until it ends, errors are Open's to return
	closing  atomic.Bool // from here on errors are Close's to return

	mu     sync.Mutex
	shards map[storage.ShardID]*shard
	closed bool
	users  sync.WaitGroup // calls that use db
}

var _ storage.Backend = (*Backend)(nil)

// Open opens the data folder, which is made if it is not there. It fails with
// ErrLocked if another process has it, and with ErrFormat if it is not one of ours.
func Open(dir string, index storage.Index, opts Options) (*Backend, error) {
	if opts.FS == nil {
		var err error // locks are told apart by name within the process
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("storage: %w", err)
		}
	}
	opts.setDefaults()
	lock, fresh, err := claim(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	b := &Backend{dir: dir, index: index, opts: opts, lock: lock, shards: map[storage.ShardID]*shard{}}
	b.builders.New = func() any { return new(recordlog.Builder) }
	b.opening.Store(true)
	if err := b.openDB(fresh); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	b.opening.Store(false)
	b.rested = time.AfterFunc(b.rest(), b.compactions.begin)
	b.counts.init()
	b.committer.init(b.failedWith)
	b.notifier.init(b.failedWith)
	b.folder.init(b.failedWith)
	b.cleaner.init(b.failedWith)
	b.commits.Go(b.commitLoop)
	b.notifies.Go(b.notifyLoop)
	b.folds.Go(b.foldLoop)
	b.cleanings.Go(b.cleanLoop)
	return b, nil
}

// openDB opens pebble's database. Only a fresh folder may be without one: else it
// would seem that nothing had ever been stored.
func (b *Backend) openDB(fresh bool) (err error) {
	o := b.pebbleOptions()
	o.Experimental.CompactionScheduler = &b.compactions
	o.ErrorIfNotExists = !fresh
	path := b.opts.FS.PathJoin(b.dir, dbFolder)
	if b.db, err = pebble.Open(path, o); errors.Is(err, pebble.ErrDBDoesNotExist) {
		return fmt.Errorf("%w: %s is gone: restore it from a backup, or start with an empty folder", storage.ErrCorrupt, path)
	} else if err != nil {
		return fmt.Errorf("storage: open the database in %s: %w: %s", b.dir, err, advice(err))
	}
	if !fresh {
		return nil
	}
	if err := endFormat(b.opts.FS, b.dir); err != nil {
		return errors.Join(err, b.db.Close())
	}
	return nil
}

func (b *Backend) pebbleOptions() *pebble.Options {
	events := b.events()
	watch := watchFS{b.opts.FS, b.opts.FS.PathJoin(b.dir, dbFolder), func(err error) {
		if !b.opening.Load() && !b.closing.Load() {
			b.fail(err)
		}
	}}
	o := &pebble.Options{
		FS:                 watch,
		FormatMajorVersion: pebble.FormatTableFormatV6, // pinned: it decides which releases can read the folder
		CacheSize:          b.opts.CacheBytes,
		MemTableSize:       b.opts.MemTableBytes,
		MaxOpenFiles:       b.opts.MaxOpenFiles,
		// Two memtables may wait for their flush before writes do.
		MemTableStopWritesThreshold: 3,
		// L0 is read by every Load: keep it low.
		L0CompactionThreshold: 4,
		// Room for what is flushed while compactions rest.
		L0StopWritesThreshold: stopWrites,
		Logger:                logger{b},
		EventListener:         events,
	}
	// Most of what is written is superseded before anybody reads it: compressing
	// it took a fifth of the CPU of a commit of ten partitions.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.UniformDBCompressionSettings(sstable.NoCompression)
	})
	return o
}

// enter registers a use of the database that Close waits for.
func (b *Backend) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.users.Add(1)
	return true
}

func (b *Backend) allShards() []*shard {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*shard, 0, len(b.shards))
	for _, s := range b.shards {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y *shard) int { return int(x.id) - int(y.id) })
	return all
}

// shard is the state of a shard, made at its first opening.
func (b *Backend) shard(id storage.ShardID) *shard {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shards[id]
	if s == nil {
		s = newShard(b, id)
		b.shards[id] = s
	}
	return s
}

// Open implements storage.Backend. It waits until what the shard's earlier Log
// has appended is durable and told, and folds what a crash left unfolded.
func (b *Backend) Open(id storage.ShardID, durable func(storage.Offset, error)) (storage.Log, error) {
	if id < 0 || id > maxShard {
		return nil, fmt.Errorf("open shard %d: ids are 0 to %d", id, maxShard)
	}
	if !b.enter() {
		return nil, fmt.Errorf("open shard %d: %w", id, storage.ErrClosed)
	}
	defer b.users.Done()
	s := b.shard(id)
	s.opening.Lock()
	defer s.opening.Unlock()
	if err := s.fence(); err != nil {
		return nil, fmt.Errorf("open shard %d: %w", id, err)
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open shard %d: %w", id, err)
	}
	log := &Log{shard: s, durable: durable}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.stopping.Load() { // Close may have passed this shard
		return nil, fmt.Errorf("open shard %d: %w", id, storage.ErrClosed)
	}
	s.log = log
	return log, nil
}

const maxShard = 1<<16 - 1

// Close implements storage.Backend. It also folds every tail, so that the next
// Open has nothing to catch up on.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.stopping.Store(true)
	b.rested.Stop()
	shards := b.allShards()
	for _, s := range shards {
		s.mu.Lock()
		s.log = nil // no Append from here on
		s.mu.Unlock()
	}
	b.committer.close()
	b.commits.Wait()
	b.notifier.close()
	b.notifies.Wait()
	b.folder.close()
	b.folds.Wait()
	b.cleaner.close()
	b.cleanings.Wait()
	b.users.Wait()
	err := b.settle(shards)
	b.closing.Store(true)
	if !b.wedged.Load() {
		err = errors.Join(err, b.db.Close())
	}
	if err = errors.Join(err, b.lock.Close()); err != nil {
		return fmt.Errorf("close %s: %w", b.dir, err)
	}
	return nil
}

// settle folds all tails and empties pebble's WAL.
func (b *Backend) settle(shards []*shard) error {
	for _, s := range shards {
		if err := b.failedWith(); err != nil {
			return err
		}
		if err := s.fold(); err != nil {
			return err
		}
	}
	if err := b.failedWith(); err != nil {
		return err
	}
	return b.db.Flush()
}

// write applies a batch. Pebble panics, its mutex held, when its WAL has failed
// before: after a failure that is what must happen, anything else is a bug.
func (b *Backend) write(batch *pebble.Batch, sync bool) (err error) {
	if err := b.failedWith(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			if err = b.failedWith(); err == nil {
				panic(r)
			}
			b.wedged.Store(true)
		}
	}()
	if sync {
		if err := b.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
			return err
		}
		err = batch.SyncWait()
	} else {
		err = b.db.Apply(batch, pebble.NoSync)
	}
	return errors.Join(err, b.failedWith())
}
