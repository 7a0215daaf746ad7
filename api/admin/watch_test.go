package admin

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWatchPushesChanges(t *testing.T) {
	w := newWorld(t)
	next := w.watch(t.Context(), `{"group":"g"}`)
	// until reads on to a description that has all of these; what comes between is pushed too.
	until := func(want ...string) {
		t.Helper()
		for seen := 0; ; seen++ {
			got, err := next()
			if err != nil || seen > 20 {
				t.Fatalf("%v: %v", want, err)
			}
			all := true
			for _, part := range want {
				all = all && strings.Contains(got, part)
			}
			if all {
				return
			}
		}
	}
	until(`"state":"Dead"`, `"generation":-1`)
	w.commit("g", 0, 1)
	until(`"state":"Empty"`)
	member := w.join("g")
	until(`"state":"Stable"`, `"generation":1`, `"member_id":"`+member+`"`, `"assignment":[{"topic":"orders","partitions":[0,1]}]`)
	w.leave("g", member)
	until(`"state":"Empty"`, `"generation":2`)

	ended := make(chan error, 1)
	go func() {
		_, err := next()
		ended <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.server.Drain(ctx) // does not wait for who watches
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Errorf("at the end: %v", err)
	}
}

// TestAWatcherThatDoesNotReadHurtsNobody: the group goes on, and what he reads at
// last is what is then.
func TestAWatcherThatDoesNotReadHurtsNobody(t *testing.T) {
	w := newWorld(t)
	idle := w.watch(t.Context(), `{"group":"g"}`)
	reader := w.watch(t.Context(), `{"group":"g"}`)
	if _, err := reader(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.leave("g", w.join("g"))
	}
	for got := ""; !strings.Contains(got, `"generation":200`); {
		var err error
		if got, err = reader(); err != nil {
			t.Fatal(err)
		}
	}
	for got := ""; !strings.Contains(got, `"generation":200`); {
		var err error
		if got, err = idle(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatchersAreBounded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	for range maxWatching {
		if _, err := w.watch(ctx, `{"group":"g"}`)(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.watch(ctx, `{"group":"g"}`)(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	cancel()
	for { // places come back as soon as the streams have ended
		_, err := w.watch(t.Context(), `{"group":"g"}`)()
		if err == nil {
			return
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}
