package shard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/storage"
)

// put is one write of a register, as the client knows it.
type put struct {
	value string
	acked bool
}

// TestAnyScriptKeepsItsPromises plays random scripts with faults anywhere and
// checks, for a client that knows only its answers: an acknowledged write is
// never lost, no answer leaves before the log is durable up to what it saw,
// every request is answered at most once (the harness panics) and, when all
// is durable, but for parked ones once; decisions leave hard state alone
// (Checked panics); and what a crash leaves is what a replay of the log gives.
func TestAnyScriptKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(rapid.Bool().Draw(t, "evicts"))
		sent := map[string][]*put{} // register → writes, in order
		gates := map[string]storage.Offset{}
		byName := map[string]*put{}
		seq := 0
		h.Answered = func(name string, r string, err error) {
			if err != nil {
				return
			}
			if h.Durable < gates[name] {
				t.Fatalf("%s was answered %q at %d, and saw %d", name, r, h.Durable, gates[name])
			}
			if p := byName[name]; p != nil {
				p.acked = true
			}
		}
		ask := func(a ask) string {
			seq++
			name := fmt.Sprintf("q%d", seq)
			if a.op == "put" {
				p := &put{value: fmt.Sprint(seq)}
				byName[name] = p
				key := a.box + "." + a.args
				sent[key] = append(sent[key], p)
				a.args += "=" + p.value
			}
			// What it will see ends here, with its own record; an answer that
			// leaves at once is checked against what was appended before.
			gates[name] = h.End()
			h.Ask(name, a)
			gates[name] = max(gates[name], h.End())
			return name
		}
		box := rapid.SampledFrom([]string{"a", "b", "c"})
		register := rapid.SampledFrom([]string{"h", "x", "y"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { ask(askOf("put", box.Draw(t, "box"), register.Draw(t, "register"))) },
			"get": func(t *rapid.T) { ask(askOf("get", box.Draw(t, "box"), register.Draw(t, "register"))) },
			"wait": func(t *rapid.T) {
				ask(askOf("wait", box.Draw(t, "box"), register.Draw(t, "register")+"="+fmt.Sprint(seq+rapid.IntRange(1, 5).Draw(t, "later"))))
			},
			"sync":    func(t *rapid.T) { h.Sync() },
			"hold":    func(t *rapid.T) { h.Log.Hold() },
			"release": func(t *rapid.T) { h.Log.Release(rapid.IntRange(1, 3).Draw(t, "steps")); h.Sync() },
			"advance": func(t *rapid.T) { h.Advance(time.Duration(rapid.IntRange(1, 5).Draw(t, "s")) * time.Second) },
			"fail":    func(t *rapid.T) { h.Log.FailNext(errors.New("injected"), rapid.Bool().Draw(t, "written")) },
			"crash":   func(t *rapid.T) { h.Crash() },
		})
		h.Log.Release(-1)
		h.Sync()
		if err := h.Shard.Open(); err != nil {
			t.Fatal(err)
		}
		for key, ps := range sent {
			b, r, _ := strings.Cut(key, ".")
			name := ask(askOf("get", b, r))
			h.Sync()
			got, ok := h.Answers[name]
			if !ok || got.Err != nil {
				t.Fatalf("%s: %+v, answered: %t", key, got, ok)
			}
			checkRegister(t, key, ps, got.Resp)
		}
		var live, replayed strings.Builder
		h.Machine.(checked).Dump(&live)
		fresh := newToy(false)
		if err := h.Replay(fresh.Apply); err != nil {
			t.Fatal(err)
		}
		fresh.Dump(&replayed)
		for line := range strings.Lines(live.String()) { // evicted boxes are not in memory
			if !strings.Contains(replayed.String(), line) {
				t.Fatalf("live:\n%s\nreplayed:\n%s", live.String(), replayed.String())
			}
		}
	})
}

func askOf(op, box, args string) ask { return ask{op: op, box: box, args: args} }

// checkRegister: the value is the last acknowledged write, or a later one whose outcome is unknown.
func checkRegister(t *rapid.T, key string, ps []*put, got string) {
	for i := len(ps) - 1; i >= 0; i-- {
		if ps[i].value == got {
			return
		}
		if ps[i].acked {
			t.Fatalf("%s is %q, and %q was acknowledged", key, got, ps[i].value)
		}
	}
	if got != "" {
		t.Fatalf("%s is %q, which nobody wrote", key, got)
	}
}
