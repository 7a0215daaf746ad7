package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// shardsFile says how many shards a data folder was made for. A group is found by
// its id's hash modulo that number: with another one it would seem to be gone.
const shardsFile = "offsets.topic.num.partitions"

// logFolder is where the coordinator's log is in a data folder. It is made before
// shardsFile: a folder that has the file and not the log has lost it.
const logFolder = "coordinator"

// claimShards makes the folder what it is asked to be, or refuses.
func claimShards(folder string, shards int) error {
	file := filepath.Join(folder, shardsFile)
	said, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Join(folder, logFolder), 0o755); err != nil {
			return opening(fmt.Errorf("the data folder: %w", err))
		}
		return writeDurably(file, strconv.Itoa(shards)+"\n")
	}
	if err != nil {
		return opening(fmt.Errorf("the data folder: %w", err))
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(said)))
	switch {
	case err != nil:
		return mistake{fmt.Errorf("%s says %q, which is no number of partitions: restore the file, or use another folder", file, said)}
	case n != shards:
		return mistake{fmt.Errorf("the data folder %s was made with %s=%d, now it is %d: its groups would not be found. Set it back, or use another folder",
			folder, shardsFile, n, shards)}
	}
	if _, err := os.Stat(filepath.Join(folder, logFolder)); errors.Is(err, os.ErrNotExist) {
		return mistake{fmt.Errorf("the data folder %s has been used, and its folder %q is gone: restore it from a backup, or use another folder", folder, logFolder)}
	}
	return nil
}

// writeDurably makes a file whole or not at all.
func writeDurably(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".")
	if err != nil {
		return opening(err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return opening(errors.Join(err, os.Remove(f.Name())))
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return opening(err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
