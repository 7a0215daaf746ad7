package clienttest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// executable is kcoord, built once for all tests.
var executable string

const command = "github.com/kcoord/kcoord/cmd/kcoord"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "kcoord-clienttest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	executable = filepath.Join(folder, "kcoord")
	build := exec.Command("go", "build", "-o", executable, command)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building kcoord:", err)
		return 1
	}
	parallel()
	return m.Run()
}

// lookAtSource makes what go test remembers of these tests depend on kcoord's source,
// which they don't import: it forgets a result when a file that was looked at changes.
var lookAtSource = sync.OnceValue(func() error {
	list, err := exec.Command("go", "list", "-deps", "-f",
		`{{if and .Module .Module.Main}}{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}`, command).Output()
	if err != nil {
		return fmt.Errorf("listing kcoord's source: %w", err)
	}
	for file := range strings.FieldsSeq(string(list)) {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
})

// parallel lets more tests run at a time than there are cores, unless it was said
// how many: they wait for clients' timers most of the time.
func parallel() {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", "8")
	}
}

// patience is what a failure waits for, and nothing else.
const patience = 40 * time.Second

// until waits until holds returns nil, and tells its last complaint when it never does.
func until(t testing.TB, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := holds()
	for pause(ctx) && err != nil {
		err = holds()
	}
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, patience, err)
	}
}

// pause lets others work before something is tried again. It returns false when ctx is over.
func pause(ctx context.Context) bool {
	again := time.NewTimer(5 * time.Millisecond)
	defer again.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-again.C:
		return true
	}
}
