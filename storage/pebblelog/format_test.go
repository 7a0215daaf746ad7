package pebblelog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

func TestFormat(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  []string // nothing: it opens
	}{
		{"no folder", nil, nil},
		{"a fresh volume", map[string]string{"lost+found": ""}, nil},
		{"a first start that was cut off", map[string]string{"LOCK": "", "FORMAT.new": "kcoord sto"}, nil},
		{"a later format", map[string]string{"FORMAT": "kcoord storage format 2\nwhatever"}, []string{"format 2", "knows format 1", "newer"}},
		{"an unreadable format", map[string]string{"FORMAT": "\x00\x01\x02"}, []string{`"\x00\x01\x02"`, "restore the file"}},
		{"an empty format", map[string]string{"FORMAT": ""}, []string{`""`}},
		{"somebody else's folder", map[string]string{"notes.txt": "mine"}, []string{`"notes.txt"`, "folder of its own"}},
		{"a broker's folder", map[string]string{"meta.properties": "version=1"}, []string{`"meta.properties"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "data")
			if c.files != nil {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			opts := small(nil)
			opts.FS = nil
			b, err := Open(dir, logtest.Index, opts)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				text, _ := os.ReadFile(filepath.Join(dir, "FORMAT"))
				if !strings.HasPrefix(string(text), "kcoord storage format 1\n") {
					t.Fatalf("FORMAT is %q", text)
				}
				return
			}
			if err == nil {
				b.Close()
				t.Fatal("it opened")
			}
			if !errors.Is(err, storage.ErrFormat) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			left, _ := os.ReadDir(dir)
			if len(left) != len(c.files) {
				t.Errorf("the refused folder now holds %v", left)
			}
		})
	}
}

// TestGone takes away the database of a folder that was used: that is not a folder that
// nothing was ever stored in. Until a first start has made it, it is.
func TestGone(t *testing.T) {
	for _, empty := range []bool{false, true} {
		dir := t.TempDir()
		opts := small(nil)
		opts.FS = nil
		if err := mustOpen(t, dir, opts).Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "db")); err != nil {
			t.Fatal(err)
		}
		if empty {
			if err := os.Mkdir(filepath.Join(dir, "db"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(dir, logtest.Index, opts)
		if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), "db is gone") {
			t.Fatalf("without db: %v", err)
		}
		if err := os.Rename(filepath.Join(dir, "FORMAT"), filepath.Join(dir, "FORMAT.new")); err != nil {
			t.Fatal(err)
		}
		if err := mustOpen(t, dir, opts).Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormatIsDurable crashes right after the first opening.
func TestFormatIsDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := mustOpen(t, "parent/data", never(fs))
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := readFormat(after, "parent/data"); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, "parent/data", never(after)).Close(); err != nil {
		t.Fatal(err)
	}
}
