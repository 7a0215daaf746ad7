package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// folder looks whether the data folder can be written, and how fast the disk syncs:
// that decides how long a commit takes.
func (c *checking) folder() {
	if c.o.Data == "" {
		c.add(Warn, "The data folder was not looked at: say it with --data DIR.")
		return
	}
	at, made := existing(c.o.Data)
	syncs, err := syncTimes(at)
	if err != nil {
		c.add(Fail, "%s cannot be written: %v.", at, err)
		return
	}
	if made {
		c.add(OK, "%s can be written.", c.o.Data)
	} else {
		c.add(OK, "%s does not exist yet, and can be made in %s.", c.o.Data, at)
	}
	median := syncs[len(syncs)/2]
	text := fmt.Sprintf("A sync takes %s there (of %d, the slowest %s): no commit is acknowledged faster.",
		median.Round(10*time.Microsecond), len(syncs), syncs[len(syncs)-1].Round(10*time.Microsecond))
	switch {
	case median > 50*time.Millisecond:
		c.add(Warn, "%s That is slow: use a disk of its own, or one with a write cache that survives a power cut.", text)
	default:
		c.add(OK, "%s", text)
	}
}

// existing is the folder, or the nearest one above it.
func existing(folder string) (at string, itself bool) {
	for at = filepath.Clean(folder); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.IsDir() || filepath.Dir(at) == at {
			return at, at == filepath.Clean(folder)
		}
	}
}

// syncTimes writes and syncs a file that is removed again; the times come sorted.
func syncTimes(folder string) (times []time.Duration, err error) {
	f, err := os.CreateTemp(folder, ".kcoord-check-")
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := bytes.Repeat([]byte{1}, 4096)
	for range 20 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, nil
}

// oldest is a time that no clock which is right can show.
var oldest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clock looks at this machine's clock: offsets expire by it. The broker does not tell
// its own; what can be seen is one that was never set, or that jumps.
func (c *checking) clock(context.Context) {
	now := time.Now()
	wall := now.Round(0).Sub(c.started.Round(0))
	jump := (wall - now.Sub(c.started)).Abs()
	switch {
	case now.Before(oldest):
		c.add(Fail, "The clock says %s: set it, since offsets expire by it.", now.UTC().Format(time.DateOnly))
	case jump > time.Second:
		c.add(Warn, "The clock was set by %s just now: offsets and sessions end by it.", jump.Round(time.Millisecond))
	default:
		c.add(OK, "The clock says %s; that of the broker should say the same.", now.UTC().Format(time.RFC3339))
	}
}
