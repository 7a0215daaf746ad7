package pebblelog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// A data folder holds FORMAT, which says how to read the rest, LOCK, which its
// process holds, and the folder db, which is pebble's. FORMAT gets its name when db
// has been made: where it is, db must be, or what was stored is gone.
const (
	formatFile = "FORMAT"
	formatTemp = "FORMAT.new"
	lockFile   = "LOCK"
	dbFolder   = "db"

	formatPrefix  = "kcoord storage format "
	formatVersion = 1
)

// claim makes sure that the folder is ours, in a format that we know, and that
// no other process has it. It writes nothing into a folder that is not ours. A
// fresh one has no db yet, or one of a first start that was cut off.
func claim(fs vfs.FS, dir string) (lock io.Closer, fresh bool, err error) {
	if err := checkFormat(fs, dir); err != nil {
		return nil, false, err
	}
	if err := makeFolder(fs, dir); err != nil {
		return nil, false, fmt.Errorf("storage: make the folder %s: %w", dir, err)
	}
	lock, err = fs.Lock(fs.PathJoin(dir, lockFile))
	if err != nil {
		return nil, false, lockError(dir, err)
	}
	// What it was before the lock may have been another process's work in progress.
	err = checkFormat(fs, dir)
	if err == nil {
		fresh, err = beginFormat(fs, dir)
	}
	if err != nil {
		return nil, false, errors.Join(err, lock.Close())
	}
	return lock, fresh, nil
}

// lockError tells a held lock from one that could not be tried. Both the
// operating system's refusal and pebble's own, for this very process, mean held.
func lockError(dir string, err error) error {
	if held(err) {
		return fmt.Errorf("%w: %s: stop the kcoord that runs on it, or give this one a folder of its own (%w)", storage.ErrLocked, dir, err)
	}
	return fmt.Errorf("storage: lock %s: %w: %s", dir, err, advice(err))
}

// makeFolder makes the folder and its parents durable where they don't exist.
func makeFolder(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeFolder(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncFolder(fs, parent)
}

func syncFolder(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkFormat accepts a folder that is ours, empty or not there.
func checkFormat(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("storage: list the folder %s: %w", dir, err)
	}
	if !slices.Contains(names, formatFile) {
		begun := slices.Contains(names, formatTemp)
		for _, name := range names {
			switch {
			case name == lockFile, name == formatTemp, name == dbFolder && begun: // a first start that ended early
			case name == "lost+found": // a volume's own
			default:
				return fmt.Errorf("%w: %s has no file %s, but holds %q: give kcoord a folder of its own", storage.ErrFormat, dir, formatFile, name)
			}
		}
		return nil
	}
	return readFormat(fs, dir)
}

func readFormat(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, formatFile)
	f, err := fs.Open(path)
	if err != nil {
		return fmt.Errorf("storage: read %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("storage: read %s: %w", path, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	number, ok := strings.CutPrefix(first, formatPrefix)
	version, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil {
		return fmt.Errorf("%w: %s says %q, this build knows %q: restore the file, or give kcoord a folder of its own", storage.ErrFormat, path, first, formatPrefix+"1")
	}
	if version != formatVersion {
		return fmt.Errorf("%w: %s has format %d, this build knows format %d: start the release of kcoord that wrote it, or a newer one", storage.ErrFormat, dir, version, formatVersion)
	}
	return nil
}

// beginFormat writes the file, under the name that says that db is not made yet,
// before anything else is stored.
func beginFormat(fs vfs.FS, dir string) (fresh bool, err error) {
	if _, err := fs.Stat(fs.PathJoin(dir, formatFile)); err == nil {
		return false, nil
	}
	temp := fs.PathJoin(dir, formatTemp)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false, fmt.Errorf("storage: write %s: %w", temp, err)
	}
	_, err = fmt.Fprintf(f, "%s%d\nThis folder belongs to kcoord. Leave it to kcoord: what it holds cannot be written again.\n", formatPrefix, formatVersion)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = syncFolder(fs, dir)
	}
	if err != nil {
		return false, fmt.Errorf("storage: write %s: %w", temp, err)
	}
	return true, nil
}

// endFormat gives the file its name, when db has been made.
func endFormat(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, formatFile)
	err := fs.Rename(fs.PathJoin(dir, formatTemp), path)
	if err == nil {
		err = syncFolder(fs, dir)
	}
	if err != nil {
		return fmt.Errorf("storage: write %s: %w", path, err)
	}
	return nil
}
