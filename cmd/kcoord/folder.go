package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// shardsFile says how many shards a data folder was made for. A group is found by
// its id's hash modulo that number: with another one it would seem to be gone.
const shardsFile = "offsets.topic.num.partitions"

// txnShardsFile says how many shards there are of transactional ids. A folder that has none was
// made before there were transactions.
const txnShardsFile = "transaction.state.log.num.partitions"

// logFolder is where the coordinator's log is in a data folder. It is made before
// shardsFile: a folder that has the file and not the log has lost it.
const logFolder = "coordinator"

// claimShards makes the folder what it is asked to be, or refuses.
func claimShards(folder, name string, shards int) error {
	file := filepath.Join(folder, name)
	said, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(folder, logFolder, "FORMAT")); name == shardsFile && err == nil { // storage's first file
			return mistake{fmt.Errorf("the data folder %s has been used, and its file %q is gone, which says into how many shards groups are divided: restore it, or write that number into it (50, unless another was set)", folder, name)}
		}
		if err := os.MkdirAll(filepath.Join(folder, logFolder), 0o755); err != nil {
			return folderError(err)
		}
		return writeDurably(file, strconv.Itoa(shards)+"\n")
	}
	if err != nil {
		return folderError(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(said)))
	switch {
	case err != nil:
		return mistake{fmt.Errorf("%s says %q, which is no number of partitions: restore the file, or use another folder", file, said)}
	case n != shards:
		return mistake{fmt.Errorf("the data folder %s was made with %s=%d, now it is %d: what is in it would not be found. Set it back, or use another folder",
			folder, name, n, shards)}
	}
	if _, err := os.Stat(filepath.Join(folder, logFolder)); errors.Is(err, os.ErrNotExist) {
		return mistake{fmt.Errorf("the data folder %s has been used, and its folder %q is gone: restore it from a backup, or use another folder", folder, logFolder)}
	}
	return nil
}

// epochFile holds the coordinator epoch of the latest start.
const epochFile = "coordinator.epoch"

// epochsSince is when coordinator epochs began.
var epochsSince = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// nextEpoch is the coordinator epoch of this start: higher than at any before, durable before
// it is used. Brokers refuse transaction markers of a lower one than they have seen. It
// is also at least the minutes since 2020, so that a folder that was restored from a backup
// does not go back either.
func nextEpoch(folder string, now time.Time) (int32, error) {
	file := filepath.Join(folder, epochFile)
	said, err := os.ReadFile(file)
	last := int64(-1)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return 0, folderError(err)
	default:
		if last, err = strconv.ParseInt(strings.TrimSpace(string(said)), 10, 32); err != nil || last < 0 {
			return 0, mistake{fmt.Errorf("the data folder: %s holds %q, which is no epoch: put a number in that is higher than any before", file, said)}
		}
	}
	next := max(last+1, int64(now.Sub(epochsSince)/time.Minute), 0)
	if next > math.MaxInt32 {
		return 0, mistake{fmt.Errorf("the data folder: %s: coordinator epochs are used up", file)}
	}
	return int32(next), writeDurably(file, strconv.FormatInt(next, 10)+"\n")
}

// writeDurably makes a file whole or not at all.
func writeDurably(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".")
	if err != nil {
		return folderError(err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return folderError(errors.Join(err, os.Remove(f.Name())))
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return folderError(err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
