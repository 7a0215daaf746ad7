package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/pebblelog"
	"github.com/kcoord/kcoord/txnlog"
)

// stored is a record of a store to be.
type stored struct {
	log metadataversion.Log
	storage.Record
}

// everyRecord are Kafka's fixtures, each under a key of its own where the key has a group or
// transactional id.
func everyRecord(t testing.TB, every int) []stored {
	t.Helper()
	return recordsWhere(t, func(i int, _ *recordtest.Line) bool { return i%every == 0 })
}

func recordsWhere(t testing.TB, wanted func(i int, l *recordtest.Line) bool) []stored {
	t.Helper()
	lines := recordtest.Load(t, filepath.Join("..", "groupmeta", "testdata"))
	lines = append(lines, recordtest.Load(t, filepath.Join("..", "txnlog", "testdata"))...)
	if found, _ := filepath.Glob("../../shared/fixtures/records/*.jsonl"); len(found) > 0 {
		lines = append(lines, recordtest.Load(t, "../../shared/fixtures/records")...)
	}
	var all []stored
	for i := range lines {
		l := &lines[i]
		if !wanted(i, l) {
			continue
		}
		log := metadataversion.GroupLog
		if l.TransactionLog() {
			log = metadataversion.TransactionsLog
		}
		record, key := l.Bytes(t)
		if key == nil {
			key, record = record, nil
		}
		if l.Case == "tombstone" {
			record = nil
		}
		all = append(all, stored{log, storage.Record{Key: ownKey(log, key, i), Value: record, Time: time.UnixMilli(1e12)}})
	}
	return all
}

// ownKey gives a key another group or transactional id.
func ownKey(log metadataversion.Log, key []byte, i int) []byte {
	if log == metadataversion.TransactionsLog {
		if _, err := txnlog.DecodeKey(key); err == nil {
			key, _ = (&txnlog.TransactionLogKey{TransactionalID: fmt.Sprint("x", i)}).AppendTo(nil)
		}
		return key
	}
	k, err := groupmeta.DecodeKey(key)
	if err != nil {
		return key
	}
	field := reflect.ValueOf(k).Elem().Field(0)
	field.SetString(fmt.Sprintf("g%d", i))
	own, err := k.AppendTo(nil)
	if err != nil {
		return key
	}
	return own
}

// whole is a store that can be looked at and purged: either backend.
type whole interface {
	storage.Backend
	storage.Keeper
}

// crashing tells of each moment at which the store may be cut off.
type crashing struct {
	whole
	step func()
}

func (c crashing) Open(id storage.ShardID, durable func(storage.Offset, error)) (storage.Log, error) {
	return c.whole.Open(id, func(end storage.Offset, err error) {
		c.step()
		durable(end, err)
	})
}

func (c crashing) Purge(id storage.ShardID, forget func([]byte) bool) error {
	err := c.whole.Purge(id, forget)
	c.step()
	return err
}

func smallStore(t testing.TB, fs vfs.FS) *pebblelog.Backend {
	t.Helper()
	b, err := pebblelog.Open("data", Index, pebblelog.Options{
		FS: fs, FoldBytes: 4 << 10, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, Fatal: func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const testShards = 3 // of either log

// usually is how long a rewrite rests outside of tests.
var usually = rest

func init() { rest = 0 }

// testStores are the shards with the log that each is of.
func testStores(visit func(metadataversion.Log, storage.ShardID)) {
	for id := range storage.ShardID(testShards) {
		visit(metadataversion.GroupLog, id)
		visit(metadataversion.TransactionsLog, TxnShards+id)
	}
}

func nodeOver(t testing.TB, b storage.Backend, checkpoint func(string) (int64, error)) *Node {
	t.Helper()
	n, err := Open(Options{
		Backend: b, Shards: testShards, TxnShards: testShards, Log: zerolog.Nop(), Checkpoint: checkpoint, Downgrades: t.TempDir(),
		Group: group.Config{
			MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour, MaxSize: 1 << 20, MetadataMaxChars: 4096, LegacyTxnCommit: group.AllowLegacy,
			Retention: 1 << 60, RetentionCheckInterval: 1 << 60,
		},
		Txn: txn.Config{MaxTimeout: 1 << 60, AbortInterval: 1 << 60, Expiration: 1 << 60, RemoveInterval: 1 << 60, TransactionVersion: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// seed appends records to the shards in turn.
func seed(t testing.TB, b storage.Backend, recs []stored) {
	t.Helper()
	testStores(func(log metadataversion.Log, id storage.ShardID) {
		var mine []storage.Record
		for i, r := range recs {
			if r.log == log && storage.ShardID(i%testShards) == id%TxnShards {
				mine = append(mine, r.Record)
			}
		}
		appendAll(t, b, id, mine)
	})
}

func appendAll(t testing.TB, b storage.Backend, id storage.ShardID, mine []storage.Record) {
	t.Helper()
	told := make(chan storage.Offset, 1000)
	log, err := b.Open(id, func(end storage.Offset, _ error) { told <- end })
	if err == nil {
		err = log.Append(mine)
	}
	if err != nil {
		t.Fatal(err)
	}
	for len(mine) > 0 && <-told < log.End() {
	}
}

// latestOf is what each key of the store has, but for tombstones.
func latestOf(t testing.TB, b storage.Keeper) map[string]stored {
	t.Helper()
	all := map[string]stored{}
	testStores(func(log metadataversion.Log, id storage.ShardID) {
		err := b.Latest(id, func(_ storage.Offset, r storage.Record) error {
			if r.Value != nil {
				all[fmt.Sprint(id, " ", string(r.Key))] = stored{log, storage.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return all
}

// checkLog: the target reads every record that is in the log, and each key has what
// the rewrite of what was there makes of it.
func checkLog(t testing.TB, b whole, to metadataversion.Target, before map[string]stored) {
	t.Helper()
	reader, ours, rw := metadataversion.ReaderOf(to.Release), metadataversion.Ours(), metadataversion.NewRewriter(to)
	testStores(func(log metadataversion.Log, id storage.ShardID) {
		l, err := b.Open(id, func(storage.Offset, error) {})
		if err != nil {
			t.Fatal(err)
		}
		err = l.Read(0, func(at storage.Offset, r storage.Record) error {
			if r.Txn.Kind.Control() {
				return nil
			}
			o := reader.Read(log, r.Key, r.Value)
			tombstone := r.Value == nil && o == metadataversion.Skipped // which harms nobody
			if o != metadataversion.Read && !tombstone && (o != metadataversion.Skipped || ours.Read(log, r.Key, r.Value) != metadataversion.Skipped) {
				t.Errorf("to %s: shard %d, offset %d: %x=%x: %s", to, id, at, r.Key, r.Value, o)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	after := latestOf(t, b)
	for key, was := range before {
		want := was.Value
		res := rw.Rewrite(nil, was.log, was.Key, was.Value)
		switch res.Action {
		case metadataversion.Replace:
			want = res.Value
		case metadataversion.Delete:
			want = nil
		}
		got, has := after[key]
		if kind, _ := groupmeta.TypeOfKey(was.Key); was.log == metadataversion.GroupLog && kind == groupmeta.TypeGroupMetadata && (want != nil) == has {
			continue // its members' sessions end
		}
		if was.log == metadataversion.TransactionsLog && decided(was.Value) && (want != nil) == has {
			continue // its markers are written meanwhile
		}
		if has != (want != nil) || !bytes.Equal(got.Value, want) {
			t.Errorf("to %s: %x is %x, want %x", to, was.Key, got.Value, want)
		}
	}
}

// decided says whether a transaction's markers are out.
func decided(value []byte) bool {
	var v txnlog.TransactionLogValue
	if _, err := v.Decode(value); err != nil {
		return false
	}
	const prepareCommit, prepareAbort = 2, 3
	return v.TransactionStatus == prepareCommit || v.TransactionStatus == prepareAbort
}

// allTargets are every version, as its line's first release and as one that tolerates newer records.
func allTargets(t testing.TB) []metadataversion.Target {
	t.Helper()
	var all []metadataversion.Target
	for v := range metadataversion.All() {
		to := metadataversion.TargetOf(v)
		all = append(all, to)
		if r := to.Release.Tolerant(); r.String() != to.Release.String() && r.String()[:3] == v.Release() {
			to.Release = r
			all = append(all, to)
		}
	}
	return all
}

// TestDowngradeMatrix forces a store on disk that holds more of every record version from
// every version to one below it, and from the latest to all. Restored, its log is byte for
// byte what it was. TestEveryPair has the other pairs, in memory.
func TestDowngradeMatrix(t *testing.T) {
	every := 7
	if testing.Short() {
		every = 41
	}
	recs := everyRecord(t, every)
	targets := allTargets(t)
	seedOf := rand.Uint64()
	rng := rand.New(rand.NewPCG(seedOf, 0))
	t.Logf("seed %d, %d records", seedOf, len(recs))
	for i, from := range targets {
		var pairs [][2]metadataversion.Target
		if from.Version != metadataversion.Latest {
			pairs = append(pairs, [2]metadataversion.Target{metadataversion.TargetOf(metadataversion.Latest), from})
		}
		if to := targets[rng.IntN(i+1)]; to.Version < from.Version {
			pairs = append(pairs, [2]metadataversion.Target{metadataversion.TargetOf(from.Version), to})
		}
		for _, p := range pairs {
			forceOnce(t, p[0], p[1], recs)
		}
	}
}

func forceOnce(t *testing.T, from, to metadataversion.Target, recs []stored) {
	t.Helper()
	fs := vfs.NewMem()
	b := smallStore(t, fs)
	n := nodeOver(t, b, b.Checkpoint)
	if _, err := n.Change(t.Context(), Change{To: from}); err != nil {
		t.Fatalf("from %s: %v", from, err)
	}
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Close()
	seed(t, b, recs)
	if err := b.Close(); err != nil { // folds, which takes out what is superseded
		t.Fatal(err)
	}
	b = smallStore(t, fs)
	before, logBefore := latestOf(t, b), logOf(t, b)
	n = nodeOver(t, b, b.Checkpoint)
	_, err := n.Change(t.Context(), Change{To: to})
	var lossy *Lossy
	switch {
	case !errors.As(err, &lossy):
		t.Fatalf("to %s, unforced: %v", to, err)
	case n.Finalized().Version != from.Version:
		t.Fatalf("to %s: refused, and now at %s", to, n.Finalized().Version)
	}
	done, err := n.Change(t.Context(), Change{To: to, Force: true})
	if err != nil || done.CheckpointBytes == 0 {
		t.Fatalf("to %s, forced: %+v, %v", to, done, err)
	}
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, under := n.Rewriting()
	if under || status.Problem != "" || status.Shards != status.Of || n.Finalized().Version != to.Version {
		t.Fatalf("to %s: %+v, finalized %s", to, status, n.Finalized().Version)
	}
	n.Close()
	checkLog(t, b, to, before)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pebblelog.Restore(fs, done.Checkpoint, "data"); err != nil {
		t.Fatal(err)
	}
	b = smallStore(t, fs)
	sameLog(t, logOf(t, b), logBefore)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.Fatalf("from %s to %s", from, to)
	}
}

// TestDowngradeSurvivesCrashes cuts the store off at each step of a forced downgrade: it
// then is as before the downgrade began, or goes on by itself to the same end.
func TestDowngradeSurvivesCrashes(t *testing.T) {
	every, targets := 5, []string{"3.3.2", "3.3.3", "0.10.0", "4.0"}
	if testing.Short() {
		every, targets = 61, targets[:2]
	}
	recs := everyRecord(t, every)
	for _, name := range targets {
		t.Run(name, func(t *testing.T) {
			to, err := metadataversion.ParseTarget(name)
			if err != nil {
				t.Fatal(err)
			}
			crashEverywhere(t, to, recs)
		})
	}
}

func crashEverywhere(t *testing.T, to metadataversion.Target, recs []stored) {
	fs := vfs.NewCrashableMem()
	b := smallStore(t, fs)
	seed(t, b, recs)
	before := latestOf(t, b)
	rng := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	type crash struct {
		*vfs.MemFS
		report []byte
	}
	var clones []crash
	armed, path := false, ""
	c := crashing{b, func() {
		mu.Lock()
		defer mu.Unlock()
		if armed {
			report, _ := os.ReadFile(path)
			clones = append(clones, crash{fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}), report})
		}
	}}
	n := nodeOver(t, c, func(to string) (int64, error) {
		mu.Lock()
		path = filepath.Join(filepath.Dir(to), "report.jsonl")
		mu.Unlock()
		return b.Checkpoint(to)
	})
	mu.Lock()
	armed = true
	mu.Unlock()
	if _, err := n.Change(t.Context(), Change{To: to, Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, _ := n.Rewriting()
	mu.Lock()
	armed = false
	mu.Unlock()
	n.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	began := 0
	for i, clone := range clones {
		b := smallStore(t, clone.MemFS)
		l, err := readLedger(b)
		if err == nil && l.Rewrite != nil { // as a crash may leave it
			err = os.WriteFile(path, append(clone.report, `{"log":"__consumer_of`...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		n := nodeOver(t, b, b.Checkpoint)
		if n.Finalized().Version != metadataversion.Latest {
			began++
			if err := n.AwaitRewrite(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		lowered := n.Finalized().Version == to.Version
		after, _ := n.Rewriting()
		n.Close()
		if lowered {
			checkLog(t, b, to, before)
			sameLosses(t, reported(t, path), after.Lost)
			sameLosses(t, after.Lost, status.Lost)
		} else if after := latestOf(t, b); len(after) != len(before) {
			t.Errorf("crash %d: not lowered, and %d of %d records are there", i, len(after), len(before))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("crash %d of %d", i, len(clones))
		}
	}
	t.Logf("%d crashes, %d while it was rewritten", len(clones), began)
	if began < testShards*2 {
		t.Errorf("%d crashes, %d of them after the beginning", len(clones), began)
	}
}

// ready is a node over a store in memory, to be forced to 3.3.2, at which nothing that the
// latest version writes can be read.
func ready(t *testing.T) (n *Node, b *pebblelog.Backend, to metadataversion.Target) {
	t.Helper()
	b = smallStore(t, vfs.NewMem())
	n = nodeOver(t, b, b.Checkpoint)
	to, err := metadataversion.ParseTarget("3.3.2")
	if err != nil {
		t.Fatal(err)
	}
	return n, b, to
}

// TestRewriteWaitsForTransactions: an offset that is committed in a transaction counts,
// though the plain one before it was to be rewritten while it was pending.
func TestRewriteWaitsForTransactions(t *testing.T) {
	n, b, to := ready(t)
	do[*kmsg.OffsetCommitResponse](t, n, commit("g", "t", 5))
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Group, req.ProducerID, req.ProducerEpoch, req.Generation, req.TransactionalID = "g", 7, 0, -1, "x"
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 9, LeaderEpoch: -1}}}}
	if done := do[group.TxnCommitted](t, n, group.TxnCommit{TxnOffsetCommitRequest: req}); done.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", done)
	}
	if _, err := n.Change(t.Context(), Change{To: to}); err != nil {
		t.Fatal(err)
	}
	for s, under := n.Rewriting(); s.Waiting == 0; s, under = n.Rewriting() {
		if !under {
			t.Fatalf("it did not wait: %+v", s)
		}
		runtime.Gosched()
	}
	if got := offset(t, n, "g", "t"); got != 5 {
		t.Errorf("while it is pending: %d", got)
	}
	shard := n.shards[ShardOf("g", testShards)]
	if m, err := ask[group.Marked](shard, group.Marker{Producer: 7, Commit: true}); err != nil || m.ErrorCode != 0 {
		t.Fatal(m, err)
	}
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := offset(t, n, "g", "t"); got != 9 {
		t.Errorf("committed: %d", got)
	}
	n.Close()
	checkLog(t, b, to, nil)
	n = nodeOver(t, b, nil)
	if got := offset(t, n, "g", "t"); got != 9 {
		t.Errorf("after a restart: %d", got)
	}
	n.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGroupsAreServedDuringARewrite: commits and fetches go on, and what was acknowledged is there.
func TestGroupsAreServedDuringARewrite(t *testing.T) {
	n, b, to := ready(t)
	const groups, offsets = 40, 50
	for g := range groups {
		for o := range offsets {
			do[*kmsg.OffsetCommitResponse](t, n, commit(fmt.Sprint("g", g), fmt.Sprint("t", o), 1))
		}
	}
	var served atomic.Int64
	var stop atomic.Bool
	var clients sync.WaitGroup
	last := make([]int64, groups)
	for g := range groups {
		clients.Go(func() {
			for at := int64(2); !stop.Load(); at++ {
				do[*kmsg.OffsetCommitResponse](t, n, commit(fmt.Sprint("g", g), "t0", at))
				last[g] = at
				if got := offset(t, n, fmt.Sprint("g", g), "t0"); got != at {
					t.Errorf("g%d: %d, and %d was acknowledged", g, got, at)
				}
				served.Add(1)
			}
		})
	}
	if _, err := n.Change(t.Context(), Change{To: to}); err != nil {
		t.Fatal(err)
	}
	before := served.Load()
	if err := n.AwaitRewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	during := served.Load() - before
	stop.Store(true)
	clients.Wait()
	status, _ := n.Rewriting()
	t.Logf("%d requests while %d records were rewritten", 2*during, status.Rewritten)
	if during == 0 || status.Rewritten < groups*(offsets-1) {
		t.Errorf("%d requests during %+v", during, status)
	}
	n.Close()
	checkLog(t, b, to, nil)
	n = nodeOver(t, b, nil)
	for g := range groups {
		if got := offset(t, n, fmt.Sprint("g", g), "t0"); got != last[g] {
			t.Errorf("g%d: %d after a restart, %d was acknowledged", g, got, last[g])
		}
	}
	n.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNothingComesBetweenPlanAndDowngrade: what is committed once the plan was made, and would be
// lost, refuses the downgrade all the same; or is in the checkpoint where that is forced.
func TestNothingComesBetweenPlanAndDowngrade(t *testing.T) {
	for _, force := range []bool{false, true} {
		b := smallStore(t, vfs.NewMem())
		inCheckpoint := 0
		n := nodeOver(t, b, func(string) (int64, error) {
			inCheckpoint = len(latestOf(t, b))
			return 1, nil
		})
		to := metadataversion.TargetOf(metadataversion.V3_3_IV3)
		plans := 0
		_, err := n.Change(t.Context(), Change{To: to, Force: force, Progress: func(p Progress) {
			if p.Shards < p.Of {
				return
			}
			if plans++; plans == 1 {
				req := commit("g", "t", 5)
				req.Topics[0].TopicID = [16]byte{1}
				do[*kmsg.OffsetCommitResponse](t, n, req)
			}
		}})
		var lossy *Lossy
		switch {
		case !force && (!errors.As(err, &lossy) || n.Finalized().Version != metadataversion.Latest || inCheckpoint != 0):
			t.Errorf("unforced: %v, at %s", err, n.Finalized().Version)
		case force && (err != nil || inCheckpoint != 1):
			t.Errorf("forced: %v, %d records in the checkpoint", err, inCheckpoint)
		}
		if force {
			finish(t, n)
		} else { // as before
			req := commit("h", "t", 5)
			req.Topics[0].TopicID = [16]byte{1}
			do[*kmsg.OffsetCommitResponse](t, n, req)
			plan, err := n.PlanDowngrade(t.Context(), to, nil)
			if err != nil || plan.Losses[0].Records != 2 {
				t.Errorf("%v, %v", plan, err)
			}
		}
		n.Close()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStuckReport: a rewrite that cannot write its report says so, goes on when it can, and says so no more.
func TestStuckReport(t *testing.T) {
	b := smallStore(t, vfs.NewMem())
	var folder string
	n := nodeOver(t, b, func(to string) (int64, error) {
		folder = filepath.Dir(to)
		return 1, os.WriteFile(folder, nil, 0o644)
	})
	req := commit("g", "t", 5)
	req.Topics[0].TopicID = [16]byte{1}
	do[*kmsg.OffsetCommitResponse](t, n, req)
	if _, err := n.Change(t.Context(), Change{To: metadataversion.TargetOf(metadataversion.V3_3_IV3), Force: true}); err != nil {
		t.Fatal(err)
	}
	for s, under := n.Rewriting(); s.Problem == ""; s, under = n.Rewriting() {
		if !under {
			t.Fatalf("%+v", s)
		}
		runtime.Gosched()
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	finish(t, n)
	if s, _ := n.Rewriting(); s.Lost["OffsetCommitValue topicId"] != 1 || len(reported(t, s.Report)) != 1 {
		t.Errorf("%+v", s)
	}
	n.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
