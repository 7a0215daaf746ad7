package coordinator

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/memlog"
)

// oneOfEach are as few of Kafka's fixtures as there are record types, versions and kinds of damage; of
// the types of newer groups, which go or stay as wholes, one key and one value.
func oneOfEach(t testing.TB) []stored {
	t.Helper()
	type sort struct {
		typ     string
		version int16
		what    string
	}
	seen, kinds := map[sort]bool{}, map[string]int{}
	return recordsWhere(t, func(_ int, l *recordtest.Line) bool {
		s := sort{l.Type, l.Version, l.Case}
		if kinds[l.Type] > 0 && (strings.HasPrefix(l.Type, "Consumer") || strings.HasPrefix(l.Type, "Share") || strings.HasPrefix(l.Type, "Streams")) || seen[s] {
			return false
		}
		seen[s] = true
		kinds[l.Type]++
		return true
	})
}

// fill puts records into an empty store that is at a version, and offsets that a transaction has
// committed and aborted.
func fill(t testing.TB, b storage.Backend, from metadataversion.Version, recs []stored) {
	t.Helper()
	at := Finalized{Version: from, Levels: metadataversion.Defaults(from), Epoch: 5}
	var none *ledger
	if err := none.with(at).write(b, make(chan struct{})); err != nil {
		t.Fatal(err)
	}
	seed(t, b, recs)
	v := groupmeta.NewOffsetCommitValue()
	v.Offset, v.LeaderEpoch, v.TopicID[0] = 7, 3, 1
	value, err := v.AppendTo(nil, 4)
	if err != nil {
		t.Fatal(err)
	}
	for producer, kind := range map[int64]storage.TxnKind{1: storage.Commit, 2: storage.Abort} {
		k := groupmeta.OffsetCommitKey{Group: fmt.Sprint("of producer ", producer), Topic: "t"}
		key, err := k.AppendTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		ck, cv := storage.AppendControl(nil, nil, kind, 1)
		appendAll(t, b, 0, []storage.Record{
			{Key: key, Value: value, Time: time.UnixMilli(1e12), Txn: storage.Txn{Producer: producer, Kind: storage.Pending}},
			{Key: ck, Value: cv, Time: time.UnixMilli(1e12), Txn: storage.Txn{Producer: producer, Kind: kind}},
		})
	}
}

// sameLog: what was there is there in every byte. The sessions of members may have ended since.
func sameLog(t testing.TB, got, want []string) {
	t.Helper()
	got = slices.DeleteFunc(got, func(line string) bool {
		return !slices.Contains(want, line) && strings.Contains(line, " 0002")
	})
	if !slices.Equal(got, want) {
		t.Errorf("the log was\n%s\nand is\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// logOf is every byte of a store's logs, with offsets, times and transactions, and what is finalized.
func logOf(t testing.TB, b storage.Backend) []string {
	t.Helper()
	var all []string
	ids := []storage.ShardID{NodeShard}
	testStores(func(_ metadataversion.Log, id storage.ShardID) { ids = append(ids, id) })
	for _, id := range ids {
		l, err := b.Open(id, func(storage.Offset, error) {})
		if err == nil {
			err = l.Read(0, func(at storage.Offset, r storage.Record) error {
				all = append(all, fmt.Sprintf("%d/%d %x=%x %d %v", id, at, r.Key, r.Value, r.Time.UnixMilli(), r.Txn))
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestEveryPair forces a store from every version to every one below it, as read by the line's first release and by
// the one that tolerates newer records. Each pair is refused first, forced, cut off at a random step and gone on with, and
// both ends must be what the target reads. What the checkpoint has is what was there.
func TestEveryPair(t *testing.T) {
	recs := oneOfEach(t)
	seedOf := rand.Uint64()
	t.Logf("seed %d, %d records", seedOf, len(recs)+2)
	pairs := 0
	for from := metadataversion.Latest; from >= metadataversion.Lowest; from-- {
		if testing.Short() && like(from) {
			continue
		}
		pairs += len(below(t, from))
		t.Run(from.String(), func(t *testing.T) {
			t.Parallel()
			start := memlog.New(Index)
			defer start.Close()
			fill(t, start, from, recs)
			rng := rand.New(rand.NewPCG(seedOf, uint64(from)))
			for _, to := range below(t, from) {
				onePair(t, start, to, func(steps int) []int { return []int{rng.IntN(steps)} })
			}
		})
	}
	t.Logf("%d pairs", pairs)
}

// below are the targets of a version.
func below(t testing.TB, from metadataversion.Version) []metadataversion.Target {
	return slices.DeleteFunc(allTargets(t), func(to metadataversion.Target) bool {
		return to.Version > from || to.Version == from && to.Release.Patch < 0 || testing.Short() && to.Release.Patch < 0 && like(to.Version)
	})
}

// like says whether the version before writes and reads the same, so that they differ in their names alone.
func like(v metadataversion.Version) bool {
	before, has := v.Previous()
	return has && len(v.Changes()) == 0 && metadataversion.Defaults(before) == metadataversion.Defaults(v)
}

// TestEveryStep is TestEveryPair cut off at every step, from the latest version, for every target that something else
// is done for.
func TestEveryStep(t *testing.T) {
	recs := oneOfEach(t)
	start := memlog.New(Index)
	defer start.Close()
	fill(t, start, metadataversion.Latest, recs)
	all := func(steps int) (each []int) {
		for i := 0; i < steps; i++ {
			if testing.Short() {
				i += 9
			}
			each = append(each, i)
		}
		return each
	}
	seen := map[string]bool{}
	for _, to := range allTargets(t) {
		rw := metadataversion.NewRewriter(to)
		does := sha256.New()
		for _, r := range recs {
			res := rw.Rewrite(nil, r.log, r.Key, r.Value)
			fmt.Fprintf(does, "%d %x %v;", res.Action, res.Value, rw.ReadsTombstone(r.log, r.Key))
		}
		if sum := string(does.Sum(nil)); !seen[sum] && to.Version < metadataversion.Latest {
			seen[sum] = true
			t.Logf("to %s: %d steps", to, onePair(t, start, to, all))
		}
	}
}

// onePair returns how often it could be cut off.
func onePair(t *testing.T, start *memlog.Backend, to metadataversion.Target, pick func(steps int) []int) int {
	t.Helper()
	b, before := start.Durable(), latestOf(t, start)
	var kept *memlog.Backend
	var cuts []*memlog.Backend
	var mu sync.Mutex
	c := crashing{b, func() {
		mu.Lock()
		defer mu.Unlock()
		cuts = append(cuts, b.Durable())
	}}
	n := nodeOver(t, c, func(string) (int64, error) { kept = b.Durable(); return 1, nil })
	from := n.Finalized()
	refusedThenForced(t, n, to)
	n.Close()
	checkLog(t, b, to, before)
	sameLog(t, logOf(t, kept), logOf(t, start))

	picked := pick(len(cuts))
	for i, cut := range cuts {
		if slices.Contains(picked, i) {
			n = nodeOver(t, cut, nil)
			finish(t, n)
			lowered := n.Finalized() != from
			n.Close()
			if lowered {
				checkLog(t, cut, to, before)
			} else if got := latestOf(t, cut); len(got) != len(before) {
				t.Errorf("cut off before, and %d of %d records are there", len(got), len(before))
			}
		}
		cut.Close()
		if t.Failed() {
			t.Fatalf("from %s to %s, cut off at step %d of %d", from.Version, to, i, len(cuts))
		}
	}
	for _, b := range []*memlog.Backend{kept, b} {
		b.Close()
	}
	return len(cuts)
}

func refusedThenForced(t *testing.T, n *Node, to metadataversion.Target) {
	t.Helper()
	from := n.Finalized()
	_, err := n.Change(t.Context(), Change{To: to})
	var lossy *Lossy
	if !errors.As(err, &lossy) || n.Finalized() != from {
		t.Fatalf("from %s to %s, unforced: %v, at %s", from.Version, to, err, n.Finalized().Version)
	}
	if _, err := n.Change(t.Context(), Change{To: to, Force: true}); err != nil {
		t.Fatalf("from %s to %s, forced: %v", from.Version, to, err)
	}
	finish(t, n)
	if f := n.Finalized(); f.Version != to.Version || f.Levels != to.Levels {
		t.Fatalf("from %s to %s: at %+v", from.Version, to, f)
	}
	status, _ := n.Rewriting()
	want := map[string]int64{}
	for _, l := range lossy.Plan.Losses {
		want[l.TypeName()+" "+l.What.Names()[0]] += l.Records
	}
	sameLosses(t, status.Lost, want)
	if told := reported(t, status.Report); !maps.Equal(told, status.Lost) || status.Planned == 0 {
		t.Errorf("from %s to %s: %v are reported: %+v", from.Version, to, told, status)
	}
}

// reported is what a report tells of, each line of which must be whole and of a record of its own.
func reported(t *testing.T, path string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lost, seen := map[string]int64{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var l loss
		if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasSuffix(line, "\n") || l.Value == nil {
			t.Fatalf("%q: %v", line, err)
		}
		of := fmt.Sprint(l.Log, l.Partition, l.Offset)
		if seen[of] {
			t.Errorf("twice: %s", line)
		}
		seen[of] = true
		count(lost, l)
	}
	return lost
}

// finish waits for the end of a rewrite, if one is under way.
func finish(t *testing.T, n *Node) {
	t.Helper()
	if _, under := n.Rewriting(); !under {
		return
	}
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, under := n.Rewriting(); under || s.Problem != "" || s.Shards != s.Of {
		t.Fatalf("%+v", s)
	}
}

// sameLosses but for groups whose members' sessions end meanwhile, and transactions whose markers are written.
func sameLosses(t *testing.T, got, want map[string]int64) {
	t.Helper()
	for what, n := range want {
		if got[what] != n && !strings.HasPrefix(what, "GroupMetadataValue ") && !strings.HasPrefix(what, "TransactionLogValue ") {
			t.Errorf("%s: %d records are lost, not %d", what, got[what], n)
		}
	}
}
