package pebblelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

// The test binary runs itself as a child whose environment has childEnv: what
// to do, and in which folder.
const childEnv = "KCOORD_PEBBLELOG_CHILD"

const childShards = 3

func child() {
	what, dir, _ := strings.Cut(os.Getenv(childEnv), " ")
	opts := small(nil)
	opts.FS, opts.Fatal = nil, nil // the real ones
	opts.CleanBytes = 64 << 10
	if what == "hold" {
		childHold(dir, opts)
		return
	}
	if failing, ok := faultsOfDisk[what]; ok {
		opts.FS = errorfs.Wrap(vfs.Default, failing())
	}
	b, err := Open(dir, logtest.Index, opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	var appending sync.WaitGroup
	for id := range childShards {
		s, err := newStepper(b, storage.ShardID(id), func(end storage.Offset) {
			out.Lock()
			fmt.Println(id, end) // unbuffered: told is written
			out.Unlock()
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		appending.Go(func() { s.run(func() bool { return false }) })
	}
	appending.Wait()
	select {} // a failure ends the process, not the appending
}

// childHold has the folder open until its stdin ends.
func childHold(dir string, opts Options) {
	b, err := Open(dir, logtest.Index, opts)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
	b.Close()
}

// startChild starts the child and returns what it prints.
func startChild(t *testing.T, what, dir string) (*exec.Cmd, *bufio.Scanner, *strings.Builder) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out), &stderr
}

// acks reads what the child acknowledges, at most n lines if n is not 0.
func acks(t *testing.T, lines *bufio.Scanner, acked *[childShards]storage.Offset, n int) {
	t.Helper()
	for i := 0; (n == 0 || i < n) && lines.Scan(); i++ {
		var id int
		var end storage.Offset
		if _, err := fmt.Sscan(lines.Text(), &id, &end); err != nil {
			if n == 0 {
				return // the kill cut the line
			}
			t.Fatalf("the child printed %q", lines.Text())
		}
		acked[id] = max(acked[id], end)
	}
}

func verifyFolder(t *testing.T, dir string, acked [childShards]storage.Offset) {
	t.Helper()
	opts := small(nil)
	opts.FS = nil
	b := mustOpen(t, dir, opts)
	for id, end := range acked {
		verifySteps(t, b, storage.ShardID(id), end)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills a process in the middle of its work, again and again, on one folder.
func TestKill(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	dir := filepath.Join(t.TempDir(), "data")
	var acked [childShards]storage.Offset
	for range rounds {
		cmd, lines, stderr := startChild(t, "append", dir)
		n := rand.IntN(400) + 1
		acks(t, lines, &acked, n)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		acks(t, lines, &acked, 0)
		cmd.Wait()
		if stderr.Len() > 0 {
			t.Fatalf("the child said %s", stderr)
		}
		verifyFolder(t, dir, acked)
	}
	t.Logf("%d kills, acknowledged %v", rounds, acked)
}

func onLog(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }

// failAfter fails the operations that match, from the nth on: a disk stays full.
func failAfter(n int, err error, match func(errorfs.Op) bool) func() errorfs.Injector {
	return func() errorfs.Injector {
		var mu sync.Mutex
		seen := 0
		return errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !match(op) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if seen++; seen <= n {
				return nil
			}
			return &os.PathError{Op: "write", Path: op.Path, Err: err}
		})
	}
}

// faultsOfDisk are the places where a disk can fail under a running backend.
var faultsOfDisk = map[string]func() errorfs.Injector{
	"wal-write-enospc": failAfter(20, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && onLog(op)
	}),
	"wal-create-enospc": failAfter(2, syscall.ENOSPC, func(op errorfs.Op) bool {
		return (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) && onLog(op)
	}),
	"wal-sync-eio": failAfter(20, syscall.EIO, func(op errorfs.Op) bool {
		return (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && onLog(op)
	}),
	"flush-create-enospc": failAfter(1, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst")
	}),
	"flush-write-enospc": failAfter(3, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst")
	}),
	"full-enospc": failAfter(0, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst")
	}),
	"manifest-write-enospc": failAfter(3, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST")
	}),
	"read-only": failAfter(300, syscall.EROFS, func(op errorfs.Op) bool {
		return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
	}),
}

// TestFailingDisk runs the real thing into each of them: the process must end,
// with one message that says what and where and what to do, and what it had
// acknowledged must be there.
func TestFailingDisk(t *testing.T) {
	for what := range faultsOfDisk {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			cmd, lines, stderr := startChild(t, what, dir)
			var acked [childShards]storage.Offset
			acks(t, lines, &acked, 0)
			said := endsOfDisk(t, cmd, stderr, dir)
			if strings.HasSuffix(what, "enospc") && !strings.Contains(said, "free some space") {
				t.Errorf("the message is %q", said)
			}
			t.Logf("acknowledged %v; %s", acked, said)
			verifyFolder(t, dir, acked)
		})
	}
}

// TestStartOnAFullDisk starts where what a kill has left cannot be flushed: it must end, as it
// would when it runs, and not try for ever. With room again, all is there.
func TestStartOnAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd, lines, _ := startChild(t, "append", dir)
	var acked [childShards]storage.Offset
	acks(t, lines, &acked, 200)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	acks(t, lines, &acked, 0)
	cmd.Wait()
	cmd, _, stderr := startChild(t, "full-enospc", dir)
	if said := endsOfDisk(t, cmd, stderr, dir); !strings.Contains(said, "free some space") {
		t.Errorf("the message is %q", said)
	}
	verifyFolder(t, dir, acked)
}

// endsOfDisk waits until a child has ended because of its disk, and returns its message.
func endsOfDisk(t *testing.T, cmd *exec.Cmd, stderr *strings.Builder, dir string) string {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitStatus {
		t.Fatalf("the child ended with %v, having said %s", err, stderr)
	}
	said := stderr.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, dir) || !strings.Contains(said, "nothing that was acknowledged is lost") {
		t.Errorf("the message is %q", said)
	}
	return said
}

func TestTwoProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=hold "+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	opts := small(nil)
	opts.FS = nil
	if _, err := Open(dir, logtest.Index, opts); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("opened beside another process: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	b := mustOpen(t, dir, opts)
	if _, err := Open(dir+"/../data", logtest.Index, opts); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("opened twice by one process: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
