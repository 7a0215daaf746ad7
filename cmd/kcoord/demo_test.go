package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo plays the README's first command, as users run it.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it builds kcoord and runs it")
	}
	exe := filepath.Join(t.TempDir(), "kcoord")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	temp := t.TempDir()
	cmd := exec.Command(exe, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Everything shown was checked.") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 && !strings.Contains(line, temp) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
