package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("SOAK_ROLE") == "badly" {
		if err := misbehave(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSoak is the short form: every habit once, nothing of which stays, and no harm to those
// that behave. How fast they were answered says nothing here.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	kcoord := filepath.Join(t.TempDir(), "kcoord")
	if out, err := exec.Command("go", "build", "-o", kcoord, "../../cmd/kcoord").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := soak(t.Context(), plan{
		kcoord: kcoord, listen: "127.0.0.1:0", duration: 2 * time.Second, rounds: 1, connections: 100, groups: 10, offsets: 1000,
		beatEvery: time.Second, commitEvery: time.Second, fetchEvery: time.Second,
	})
	if err != nil {
		t.Error(err)
	}
}
