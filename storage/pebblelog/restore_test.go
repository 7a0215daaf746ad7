package pebblelog

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
)

// files are the files of a folder with what is in them.
func files(t *testing.T, fs vfs.FS, dir string, all map[string][]byte, within string) map[string][]byte {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			files(t, fs, path, all, within+name+"/")
			continue
		}
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		all[within+name] = b
	}
	return all
}

// cutFS ends at its n-th change, as a crash does.
type cutFS struct {
	vfs.FS
	left int
}

var errCut = errors.New("cut off")

func (c *cutFS) spend() error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return nil
}

func (c *cutFS) Rename(from, to string) error {
	if err := c.spend(); err != nil {
		return err
	}
	return c.FS.Rename(from, to)
}

func (c *cutFS) RemoveAll(name string) error {
	if err := c.spend(); err != nil {
		return err
	}
	return c.FS.RemoveAll(name)
}

func (c *cutFS) Create(name string, w vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.spend(); err != nil {
		return nil, err
	}
	return c.FS.Create(name, w)
}

// TestRestore: byte for byte, however often it was cut off before.
func TestRestore(t *testing.T) {
	fs := vfs.NewMem()
	b := mustOpen(t, "top/data", small(fs))
	log, d := openShard(t, b, 1)
	for i := range 30 {
		d.Append(t, log, stepRecords(i))
	}
	d.Wait(t, log.End())
	if err := b.shards[1].fold(); err != nil { // which takes out what is superseded
		t.Fatal(err)
	}
	before := recordsOf(t, log)
	if _, err := b.Checkpoint("top/checkpoint"); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		d.Append(t, log, stepRecords(30+i))
	}
	d.Wait(t, log.End())
	if err := Restore(fs, "top/checkpoint", "top/data"); !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("while it is in use: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	want := files(t, fs, "top/checkpoint", map[string][]byte{}, "")
	cuts := 0
	for ; ; cuts++ {
		c := &cutFS{fs, cuts}
		err := Restore(c, "top/checkpoint", "top/data")
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	got := files(t, fs, "top/data", map[string][]byte{}, "")
	delete(got, lockFile)
	if !reflect.DeepEqual(got, want) {
		for name := range want {
			if !bytes.Equal(want[name], got[name]) {
				t.Errorf("%s: %d bytes became %d", name, len(want[name]), len(got[name]))
			}
		}
		t.Fatalf("%d files became %d", len(want), len(got))
	}
	restored := mustOpen(t, "top/data", small(fs))
	log, _ = openShard(t, restored, 1)
	if after := recordsOf(t, log); !reflect.DeepEqual(before, after) {
		t.Errorf("%d records became %d", len(before), len(after))
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
	if cuts < 5 {
		t.Errorf("cut off %d times", cuts)
	}
	if err := Restore(fs, "top", "top/data"); !errors.Is(err, storage.ErrFormat) {
		t.Errorf("of no checkpoint: %v", err)
	}
}

// fullFS has no room for another file.
type fullFS struct{ vfs.FS }

func (fullFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, syscall.ENOSPC }

// TestRestoreWithoutRoom: what was there is there, and what was copied is not.
func TestRestoreWithoutRoom(t *testing.T) {
	fs := vfs.NewMem()
	b := mustOpen(t, "top/data", small(fs))
	if _, err := b.Checkpoint("top/checkpoint"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Restore(fullFS{fs}, "top/checkpoint", "top/data"); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
	names, err := fs.List("top")
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"checkpoint", "data"}) {
		t.Errorf("%q, %v", names, err)
	}
}
