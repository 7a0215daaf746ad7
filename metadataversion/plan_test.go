package metadataversion

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/txnlog"
)

var rewriteGolden = flag.Bool("rewrite", false, "write testdata/*.txt anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewriteGolden {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test -rewrite writes it anew):\n%s", path, got)
	}
}

func TestTableText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "versions.txt", b.String())
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 || strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
	if WriteTable(&failing{10}) == nil {
		t.Error("no error of a full disk")
	}
}

// shop is a small store of a cluster at 4.4: a classic group with a static member, a consumer group, offsets with topic
// ids, a transaction under way, a record that nobody reads and one of a type to come.
func shop() []stored {
	var all []stored
	add := func(log Log, key, value []byte) { all = append(all, stored{log: log, key: key, value: value}) }
	for p := range int32(3) {
		v := groupmeta.NewOffsetCommitValue()
		v.Offset, v.LeaderEpoch, v.TopicID[0] = 100, 4, byte(p)
		k := groupmeta.OffsetCommitKey{Group: "orders", Topic: "clicks", Partition: p}
		add(GroupLog, must(k.AppendTo(nil)), must(v.AppendTo(nil, 4)))
	}
	expires := groupmeta.NewOffsetCommitValue()
	expires.ExpireTimestamp = 1700000000000
	add(GroupLog, must((&groupmeta.OffsetCommitKey{Group: "tool", Topic: "clicks"}).AppendTo(nil)), must(expires.AppendTo(nil, 1)))
	add(GroupLog, must((&groupmeta.OffsetCommitKey{Group: "broken", Topic: "clicks"}).AppendTo(nil)), []byte{0, 3, 1})
	add(GroupLog, must((&groupmeta.OffsetCommitKey{Group: "gone", Topic: "clicks"}).AppendTo(nil)), nil)
	g := groupmeta.NewGroupMetadataValue()
	g.ProtocolType, g.CurrentStateTimestamp = "consumer", 1700000000000
	g.Members = []groupmeta.MemberMetadata{{MemberID: "m1", GroupInstanceID: groupmeta.Some("i1"), RebalanceTimeout: 60000, SessionTimeout: 10000}}
	add(GroupLog, must((&groupmeta.GroupMetadataKey{Group: "orders"}).AppendTo(nil)), must(g.AppendTo(nil, 3)))
	add(GroupLog, must((&groupmeta.ConsumerGroupMetadataKey{Group: "new"}).AppendTo(nil)), must((&groupmeta.ConsumerGroupMetadataValue{MetadataHash: 9}).AppendTo(nil, 0)))
	add(GroupLog, must((&groupmeta.ConsumerGroupMemberMetadataKey{Group: "new", MemberID: "abc"}).AppendTo(nil)), must(groupmeta.NewConsumerGroupMemberMetadataValue().AppendTo(nil, 0)))
	add(GroupLog, []byte{0, 77, 0, 0}, []byte{0, 0})
	x := txnlog.NewTransactionLogValue()
	x.ProducerID, x.NextProducerID, x.ClientTransactionVersion, x.TransactionStatus = 12, 13, 2, 1
	add(TransactionsLog, must((&txnlog.TransactionLogKey{TransactionalID: "pay"}).AppendTo(nil)), must(x.AppendTo(nil, 1)))
	return all
}

func planOf(store []stored, from, to Target) *Plan {
	p := NewPlanner(from, to)
	for _, r := range store {
		p.Visit(r.log, 7, r.key, r.value)
	}
	return p.Plan()
}

func TestPlanText(t *testing.T) {
	for _, to := range []string{"4.3", "4.0", "3.9", "3.3.3", "3.3.2", "3.4", "2.2", "2.0", "0.10.0"} {
		target, err := ParseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		n, err := planOf(shop(), TargetOf(Latest), target).WriteTo(&b)
		if err != nil || n != int64(b.Len()) {
			t.Errorf("%d of %d bytes, %v", n, b.Len(), err)
		}
		golden(t, "plan-"+to+".txt", b.String())
	}
}

// TestPlanNames: what clients chose as names breaks no line, commands no terminal and fills no memory.
func TestPlanNames(t *testing.T) {
	var store []stored
	v := groupmeta.NewOffsetCommitValue()
	v.TopicID[0] = 1
	for i, group := range []string{"esc\x1b[31m", "two\nlines", strings.Repeat("x", 32000), "\u202eback"} {
		k := groupmeta.OffsetCommitKey{Group: group, Topic: "t", Partition: int32(i)}
		store = append(store, stored{log: GroupLog, key: must(k.AppendTo(nil)), value: must(v.AppendTo(nil, 4))})
		m := groupmeta.ConsumerGroupMemberMetadataKey{Group: group, MemberID: group}
		store = append(store, stored{log: GroupLog, key: must(m.AppendTo(nil)), value: must(groupmeta.NewConsumerGroupMemberMetadataValue().AppendTo(nil, 0))})
	}
	plan := planOf(store, TargetOf(Latest), TargetOf(V2_0_IV0))
	var b strings.Builder
	if _, err := plan.WriteTo(&b); err != nil || b.Len() > 10_000 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }); i >= 0 || strings.Contains(b.String(), "\nlines") {
		t.Errorf("%q", b.String())
	}
	for _, want := range []string{`esc\x1b[31m`, `two\nlines`, `\u202eback`, "xx…xx"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if err := plan.Err(); len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}

	p := NewPlanner(TargetOf(Latest), TargetOf(V2_0_IV0))
	for i := range 1000 {
		k := groupmeta.OffsetCommitKey{Group: strings.Repeat("x", 30_000) + strconv.Itoa(i), Topic: "t"}
		p.Visit(GroupLog, 0, must(k.AppendTo(nil)), must(v.AppendTo(nil, 4)))
	}
	loss := p.Plan().Losses[0]
	if loss.Records != 1000 || !loss.MoreEntities || loss.Entities > maxNames/30_000 {
		t.Errorf("%d records, %d groups kept", loss.Records, loss.Entities)
	}
	b.Reset()
	if _, err := p.Plan().WriteTo(&b); err != nil || !strings.Contains(b.String(), "\n              and at least 129 more\n") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// TestFatalProducers: who loses the transactional id has to give up, and who is in a transaction that the target's
// release has no request to end.
func TestFatalProducers(t *testing.T) {
	const empty, ongoing, prepareCommit, completeCommit = 0, 1, 2, 4
	record := func(status int8, client int16, next int64) stored {
		v := txnlog.NewTransactionLogValue()
		v.ProducerID, v.PreviousProducerID, v.NextProducerID, v.ClientTransactionVersion, v.TransactionStatus = 5, 4, next, client, status
		return stored{log: TransactionsLog, key: must((&txnlog.TransactionLogKey{TransactionalID: "x"}).AppendTo(nil)), value: must(v.AppendTo(nil, 1))}
	}
	old := record(ongoing, 0, -1)
	for _, tc := range []struct {
		stored
		to            Version
		fatal, inside bool
	}{
		{record(ongoing, 2, -1), V3_3_IV3, true, true},
		{record(ongoing, 1, -1), V3_3_IV3, false, false},
		{old, V3_3_IV3, false, false},
		{record(prepareCommit, 0, 6), V3_3_IV3, true, true},
		{record(completeCommit, 2, -1), V3_3_IV3, false, false},
		{record(empty, 2, -1), V3_3_IV3, false, false},
		{record(completeCommit, 2, -1), V0_10_0_IV0, true, false},
		{old, V0_10_0_IV0, true, true},
		{record(ongoing, 2, -1), V4_2_IV1, false, false},
	} {
		plan := planOf([]stored{tc.stored}, TargetOf(Latest), TargetOf(tc.to))
		if tc.fatal != (plan.FatalClients == 1) || tc.fatal && (plan.Fatal[0].InTransaction != tc.inside || plan.Fatal[0].ProducerID != 5) {
			t.Errorf("to %s: %x: %+v", tc.to, tc.value, plan.Fatal)
		}
	}
}

func TestReasonsAllAtOnce(t *testing.T) {
	target, _ := ParseTarget("3.3.2")
	plan := planOf(shop(), TargetOf(Latest), target)
	err := plan.Err()
	var all *multierror.Error
	if !errors.As(err, &all) || len(all.Errors) != len(plan.Losses) || len(all.Errors) < 5 {
		t.Fatalf("%v", err)
	}
	for _, one := range all.Errors {
		if !errors.Is(one, ErrLossy) || strings.Contains(one.Error(), "\n") {
			t.Errorf("%v", one)
		}
	}
	same := planOf(shop()[:4], TargetOf(Latest), TargetOf(V4_4_IV0))
	if same.Lossy() || same.Err() != nil || same.Reasons() == nil {
		t.Errorf("%v", same.Err())
	}
	if up := planOf(shop()[:4], TargetOf(V3_3_IV3), TargetOf(Latest)); up.Lossy() || up.Rewritten+up.Deleted != 0 || up.Steps() != nil {
		t.Errorf("%+v", up)
	}
}

// failing is a writer that takes n bytes.
type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errors.New("full")
	}
	return len(b), nil
}

func TestWriteToFails(t *testing.T) {
	if _, err := planOf(shop(), TargetOf(Latest), TargetOf(V2_0_IV0)).WriteTo(&failing{10}); err == nil {
		t.Error("no error")
	}
}

// TestPlanIsFastAndSmall: issue 6 wants 1,000,000 offsets in 3 s and 200 MB, with every one of them lossy and each in a
// group of its own, which is the worst for what a plan remembers.
func TestPlanIsFastAndSmall(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("a million records")
	}
	const records = 1_000_000
	v := groupmeta.NewOffsetCommitValue()
	v.Offset, v.LeaderEpoch, v.TopicID[0], v.Metadata = 1, 2, 3, "metadata"
	value := must(v.AppendTo(nil, 4))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cpu(t)
	p := NewPlanner(TargetOf(Latest), TargetOf(V2_0_IV1))
	var key []byte
	for i := range records {
		k := groupmeta.OffsetCommitKey{Group: fmt.Sprintf("a group with a rather long name %d", i), Topic: "topic", Partition: int32(i % 100)}
		key = must(k.AppendTo(key[:0]))
		p.Visit(GroupLog, int32(i%50), key, value)
	}
	plan := p.Plan()
	took := cpu(t) - start // what it takes on an idle machine, whatever else this one does
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(p)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%s, %d MB held, %d MB from the system", took, held>>20, int64(after.Sys-before.Sys)>>20)
	if took > 3*time.Second || held > 50<<20 || after.Sys-before.Sys > 200<<20 {
		t.Errorf("%s, %d MB held, %d MB from the system", took, held>>20, int64(after.Sys-before.Sys)>>20)
	}
	for _, l := range plan.Losses {
		if l.Records != records || !l.MoreEntities || l.Entities != maxEntities || len(l.Top) != maxTop || len(l.Examples) != maxExamples {
			t.Errorf("%s: %d records, %d entities", l.What.Names(), l.Records, l.Entities)
		}
	}
	if len(plan.Losses) != 2 {
		t.Errorf("%v", plan.Err())
	}
}

func cpu(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkVisit(b *testing.B) {
	store := shop()
	for _, to := range []Version{Latest, V3_3_IV3} {
		b.Run(to.String(), func(b *testing.B) {
			p := NewPlanner(TargetOf(Latest), TargetOf(to))
			b.ReportAllocs()
			for i := range b.N {
				p.Visit(GroupLog, 0, store[i%3].key, store[i%3].value)
			}
		})
	}
}
