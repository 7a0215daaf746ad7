package pebblelog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
)

// exit is the default Options.Fatal: one message, then the end of the process.
// Nothing is cleaned up, on purpose: what is on disk is what a crash leaves, and that is fine.
func exit(err error) {
	fmt.Fprintf(os.Stderr, "kcoord: %v\n", err)
	os.Exit(exitStatus)
}

const exitStatus = 70 // EX_SOFTWARE of sysexits.h

// fail ends the backend: from now on nothing is reported durable. Only the first
// cause counts, since the later ones follow from it.
func (b *Backend) fail(cause error) {
	b.failOnce.Do(func() {
		err := fmt.Errorf("storage: %s: %w: %s", b.dir, cause, advice(cause))
		if !corrupt(cause) {
			err = fmt.Errorf("%w; nothing that was acknowledged is lost", err)
		}
		b.failure.Store(&err)
		b.opts.Fatal(err)
		// Fatal returned, which the default never does. Wake who waits.
		b.failed()
	})
}

// failed tells all goroutines and waiters of the failure.
func (b *Backend) failed() {
	b.committer.wakeAll()
	b.notifier.wakeAll()
	b.folder.wakeAll()
	b.cleaner.wakeAll()
	for _, s := range b.allShards() {
		s.mu.Lock()
		s.told.Broadcast()
		s.mu.Unlock()
	}
}

// failedWith is the failure, or nil.
func (b *Backend) failedWith() error {
	if p := b.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func advice(cause error) string {
	switch {
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT):
		return "free some space there and start kcoord again"
	case errors.Is(cause, syscall.EROFS), errors.Is(cause, syscall.EACCES), errors.Is(cause, syscall.EPERM):
		return "kcoord may not write there: check the mount and the owner, then start kcoord again"
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		return "raise the limit of open files (LimitNOFILE, ulimit -n), then start kcoord again"
	case corrupt(cause):
		return "stored bytes are not what was written: check the disk, restore the folder from a backup or start with an empty one"
	default:
		return "check the disk, then start kcoord again"
	}
}

func corrupt(cause error) bool {
	return errors.Is(cause, storage.ErrCorrupt) || pebble.IsCorruptionError(cause)
}

// held says whether a lock was refused because somebody has it. Where the file cannot even
// be opened, nobody has been asked.
func held(err error) bool {
	if path := new(fs.PathError); errors.As(err, &path) && path.Op == "open" {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EWOULDBLOCK) ||
		err.Error() == "lock held by current process"
}

// logger forwards pebble's messages. What pebble calls fatal is so.
type logger struct{ b *Backend }

func (l logger) Infof(format string, args ...any)  { l.b.opts.Logf(format, args...) }
func (l logger) Errorf(format string, args ...any) { l.b.opts.Logf(format, args...) }
func (l logger) Fatalf(format string, args ...any) {
	l.b.fail(fmt.Errorf(format, args...))
}

// events makes errors of pebble's own goroutines fatal: it would go on trying
// to flush for ever, while writes pile up and at last hang. So it would while it
// opens, where it waits for the flush of what a crash has left.
func (b *Backend) events() *pebble.EventListener {
	return &pebble.EventListener{
		// Called with pebble's lock held, which begin takes.
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { go b.compactions.begin() },
		BackgroundError: func(err error) {
			if !errors.Is(err, pebble.ErrCancelledCompaction) && !b.closing.Load() {
				b.fail(fmt.Errorf("in the background: %w", err))
			}
		},
		// Of SingleDelete, as far as pebble notices.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) { b.opts.Logf("%s", info) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			b.fail(fmt.Errorf("read %s: %w: %w", info.Path, storage.ErrCorrupt, info.Details))
		},
	}
}
