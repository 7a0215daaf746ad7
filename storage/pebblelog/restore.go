package pebblelog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// Names that a data folder's neighbours have while it is restored.
const (
	restoring = ".restoring"
	replaced  = ".replaced"
)

// Restore puts a copy of a checkpoint in the place of a data folder, byte for byte.
// Nobody may have the folder open. The checkpoint stays.
//
// The copy is whole and synced before anything that was there is touched. A crash between
// the two renames leaves no folder, which must not be taken for a new one; doing it again
// ends it.
func Restore(fs vfs.FS, checkpoint, dir string) (err error) {
	if err := isStore(fs, checkpoint); err != nil {
		return err
	}
	if _, err := fs.Stat(dir); err == nil {
		lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
		if err != nil {
			return lockError(dir, err)
		}
		defer lock.Close()
	}
	if err := fs.RemoveAll(dir + restoring); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := copyFolder(fs, checkpoint, dir+restoring); err != nil {
		return fmt.Errorf("restore %s: nothing was changed: %w", checkpoint, errors.Join(err, fs.RemoveAll(dir+restoring)))
	}
	parent := fs.PathDir(dir)
	if _, err := fs.Stat(dir); err == nil {
		err = errors.Join(fs.RemoveAll(dir+replaced), fs.Rename(dir, dir+replaced), syncFolder(fs, parent))
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	err = errors.Join(fs.Rename(dir+restoring, dir), syncFolder(fs, parent))
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := fs.RemoveAll(dir + replaced); err != nil {
		return fmt.Errorf("restored; what was there before is left in %s: %w", dir+replaced, err)
	}
	return nil
}

// isStore refuses folders that no checkpoint made.
func isStore(fs vfs.FS, dir string) error {
	if err := readFormat(fs, dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is no checkpoint: it has no file %s", storage.ErrFormat, dir, formatFile)
	} else if err != nil {
		return err
	}
	if _, err := fs.Stat(fs.PathJoin(dir, dbFolder)); err != nil {
		return fmt.Errorf("%w: %s is no checkpoint: it has no folder %s", storage.ErrFormat, dir, dbFolder)
	}
	return nil
}

// copyFolder copies all files, synced, but for a lock.
func copyFolder(fs vfs.FS, from, to string) error {
	if err := makeFolder(fs, to); err != nil {
		return err
	}
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		source, target := fs.PathJoin(from, name), fs.PathJoin(to, name)
		info, err := fs.Stat(source)
		switch {
		case err != nil:
		case info.IsDir():
			err = copyFolder(fs, source, target)
		case name != lockFile:
			err = copyFile(fs, source, target)
		}
		if err != nil {
			return err
		}
	}
	return syncFolder(fs, to)
}

func copyFile(fs vfs.FS, from, to string) error {
	in, err := fs.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
