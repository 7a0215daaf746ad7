package shard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type checked = shardtest.Checked[ask, rec, string, string]

type harness = shardtest.Harness[ask, rec, string, string]

func newHarness(evicts bool) *harness {
	return shardtest.New(shardtest.Options[ask, rec, string, string]{
		Index: toyIndex,
		Codec: toyCodec{},
		New:   func() machine.Machine[ask, rec, string, string] { return checked{Dumper: newToy(evicts)} },
	})
}

// TestScripts plays testdata: what leaves the shard, and when.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var h *harness
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				h = newHarness(d.HasArg("evicts"))
				return ""
			}
			for i, line := range strings.Split(d.Input, "\n") {
				play(t, h, fmt.Sprintf("%s.%d", d.Pos, i), strings.Fields(line))
			}
			said := h.Said
			h.Said = nil
			if open := h.Open(); len(open) > 0 {
				said = append(said, "open: "+strings.Join(open, " "))
			}
			return strings.Join(said, "\n") + "\n"
		})
	})
}

func play(t *testing.T, h *harness, pos string, f []string) {
	switch f[0] {
	case "sync":
		h.Sync()
	case "hold":
		h.Log.Hold()
	case "release":
		h.Log.Release(1)
		h.Sync()
	case "fail":
		h.Log.FailNext(errors.New("the disk is gone"), len(f) > 1 && f[1] == "written")
	case "crash":
		h.Crash()
		h.Said = append(h.Said, "-- crash")
	case "close":
		h.Shard.Close()
	case "advance":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			t.Fatal(err)
		}
		h.Advance(d)
	case "dump":
		var b strings.Builder
		if err := h.Shard.Open(); err != nil {
			t.Fatal(err)
		}
		h.Machine.(checked).Dump(&b)
		h.Said = append(h.Said, strings.Fields(b.String())...)
	default: // NAME op box args [after]
		a := ask{op: f[1], box: f[2]}
		if len(f) > 3 {
			a.args = f[3]
		}
		if len(f) > 4 {
			a.after, _ = time.ParseDuration(f[4])
		}
		h.Ask(f[0], a)
	}
}
