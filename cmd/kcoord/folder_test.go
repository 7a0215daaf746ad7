package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClaimShards goes through what a data folder may have become.
func TestClaimShards(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(folder string) error
		want  string // "": it is fine
	}{
		"untouched":       {func(string) error { return nil }, ""},
		"another number":  {func(f string) error { return os.WriteFile(filepath.Join(f, shardsFile), []byte("7\n"), 0o600) }, "=7, now it is 50"},
		"an empty file":   {func(f string) error { return os.WriteFile(filepath.Join(f, shardsFile), nil, 0o600) }, `says "", which is no number`},
		"the log is gone": {func(f string) error { return os.Remove(filepath.Join(f, logFolder)) }, `folder "coordinator" is gone`},
		"the log is there, and not the file": {func(f string) error {
			return errors.Join(os.Remove(filepath.Join(f, shardsFile)), os.WriteFile(filepath.Join(f, logFolder, "FORMAT"), nil, 0o600))
		}, `file "offsets.topic.num.partitions" is gone`},
		"all is gone":             {os.RemoveAll, ""},
		"cut off before the file": {func(f string) error { return os.Remove(filepath.Join(f, shardsFile)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			if err := claimShards(folder, shardsFile, 50); err != nil {
				t.Fatal(err)
			}
			if err := tc.spoil(folder); err != nil {
				t.Fatal(err)
			}
			err := claimShards(folder, shardsFile, 50)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v does not say %q", err, tc.want)
			}
		})
	}
}

// TestFolderErrors says what to do where the folder is none.
func TestFolderErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{file: "not a directory: choose another folder with --data", "/proc/kcoord": ": choose another folder with --data"} {
		err := claimShards(folder, shardsFile, 50)
		if !errors.As(err, &mistake{}) || !strings.HasPrefix(err.Error(), "the data folder: ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
