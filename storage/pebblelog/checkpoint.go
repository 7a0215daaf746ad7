package pebblelog

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// Checkpoint copies all that is durable into a folder that must not be there yet. What
// it makes is a data folder like any other, and is there whole or not at all. Most of it are
// links to files that never change, so it takes little time, and little room until
// the files are no longer those of the backend. It returns their size.
func (b *Backend) Checkpoint(dir string) (bytes int64, err error) {
	if !b.enter() {
		return 0, fmt.Errorf("checkpoint: %w", storage.ErrClosed)
	}
	defer b.users.Done()
	fs := b.opts.FS
	if _, err := fs.Stat(dir); err == nil {
		return 0, fmt.Errorf("checkpoint: %s: %w", dir, os.ErrExist)
	}
	partial := dir + ".partial" // of an earlier one that was cut short
	if err := fs.RemoveAll(partial); err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	err = makeFolder(fs, partial)
	if err == nil {
		_, err = beginFormat(fs, partial)
	}
	if err == nil {
		err = b.db.Checkpoint(fs.PathJoin(partial, dbFolder), pebble.WithFlushedWAL())
	}
	if err == nil {
		err = endFormat(fs, partial)
	}
	if err == nil {
		bytes, err = sizeOf(fs, partial)
	}
	if err == nil {
		err = errors.Join(syncFolder(fs, partial), fs.Rename(partial, dir), syncFolder(fs, fs.PathDir(dir)))
	}
	if err != nil {
		return 0, fmt.Errorf("checkpoint: %w", errors.Join(err, fs.RemoveAll(partial)))
	}
	return bytes, nil
}

// sizeOf adds up the files of a folder.
func sizeOf(fs vfs.FS, dir string) (int64, error) {
	names, err := fs.List(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			return 0, err
		}
		if !info.IsDir() {
			sum += info.Size()
			continue
		}
		within, err := sizeOf(fs, path)
		if err != nil {
			return 0, err
		}
		sum += within
	}
	return sum, nil
}
