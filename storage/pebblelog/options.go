package pebblelog

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are what a Backend may be told. The zero value is for production.
type Options struct {
	// IndexVersion is to be raised when the Index files keys otherwise than
	// before, be it only that it knows more of them: the key table of a shard that
	// was filed by another version is filed anew when the shard is opened.
	IndexVersion uint64

	// FoldBytes is how many bytes of a shard's log may be missing in its key
	// table before they are folded in, and FoldTotalBytes the same for all shards
	// together: not compressed, but for batches that are known to be superseded. They bound how long opening takes after a
	// crash. All together should be well below MemTableBytes: then most of what a fold takes out of the log was never
	// flushed. 1 MiB, 8 MiB.
	FoldBytes, FoldTotalBytes int64

	// CleanBytes is how much a shard's log must have grown at least since its last
	// cleaning for the next. 4 MiB.
	CleanBytes int64
	// TombstoneRetention is how long cleaning leaves tombstones in the log. 24 h.
	TombstoneRetention time.Duration
	// Now tells cleaning the time. time.Now.
	Now func() time.Time

	// CacheBytes is pebble's block cache, MemTableBytes one of its memtables, of
	// which a few may be there at a time. 32 MiB, 16 MiB.
	CacheBytes    int64
	MemTableBytes uint64

	// MaxOpenFiles is how many tables pebble keeps open, as a rule. 0: 1,000.
	MaxOpenFiles int

	// Fatal is called once, with what happened and what to do, when what was
	// appended can no longer be made durable: a failed write or sync, a full
	// disk, corruption. By default it prints the error to stderr and exits with
	// status 70. Should it return, every open log's durable gets the error, and the
	// backend is good only for Close.
	Fatal func(error)
	// Logf gets pebble's own messages. By default they go nowhere.
	Logf func(format string, args ...any)

	// FS is the file system. The operating system's.
	FS vfs.FS
}

func (o *Options) setDefaults() {
	setDefault(&o.FoldBytes, 1<<20)
	setDefault(&o.FoldTotalBytes, 8<<20)
	setDefault(&o.CleanBytes, 4<<20)
	setDefault(&o.TombstoneRetention, 24*time.Hour)
	setDefault(&o.CacheBytes, 32<<20)
	setDefault(&o.MemTableBytes, 16<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fatal == nil {
		o.Fatal = exit
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
