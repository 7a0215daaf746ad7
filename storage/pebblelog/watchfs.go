package pebblelog

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// watchFS sees every write and sync that fails, and calls failed before pebble
// hears of it. Pebble answers such errors in ways that don't tell the operator
// what happened: a failed write of the WAL comes out of SyncWait, but one while
// the WAL is switched panics with its mutex unlocked, which no recover catches;
// a failed flush is tried again for ever. The place where the cause is known is here.
// What fails outside the folder (a checkpoint) leaves the log whole.
type watchFS struct {
	vfs.FS
	within string
	failed func(error)
}

func (w watchFS) Unwrap() vfs.FS { return w.FS }

func (w watchFS) saw(what, path string, err error) error {
	if err != nil && strings.HasPrefix(path, w.within) {
		named := err
		if _, ok := errors.AsType[*os.PathError](err); !ok {
			named = fmt.Errorf("%s %s: %w", what, path, err)
		}
		w.failed(named)
	}
	return err
}

func (w watchFS) file(f vfs.File, path string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return watchFile{f, w, path}, nil
}

func (w watchFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.Create(name, c)
	return w.file(f, name, w.saw("create", name, err))
}

func (w watchFS) ReuseForWrite(oldName, newName string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(oldName, newName, c)
	return w.file(f, newName, w.saw("reuse", newName, err))
}

func (w watchFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.OpenReadWrite(name, c, opts...)
	return w.file(f, name, w.saw("open", name, err))
}

func (w watchFS) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	return w.file(f, name, err)
}

func (w watchFS) Rename(oldName, newName string) error {
	err := w.FS.Rename(oldName, newName)
	if errors.Is(err, os.ErrNotExist) {
		return err
	}
	return w.saw("rename", newName, err)
}

// watchFile is a file that is written to, or a folder that is synced.
type watchFile struct {
	vfs.File
	fs   watchFS
	path string
}

func (f watchFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.saw("write", f.path, err)
}

func (f watchFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.saw("write", f.path, err)
}

func (f watchFile) Sync() error { return f.fs.saw("sync", f.path, f.File.Sync()) }

func (f watchFile) SyncData() error { return f.fs.saw("sync", f.path, f.File.SyncData()) }

func (f watchFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.saw("sync", f.path, err)
}
