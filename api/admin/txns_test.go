package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// fresh gives out producer ids from 1000 on.
type fresh struct{ n atomic.Int64 }

func (f *fresh) Fresh(context.Context, int) ([]txn.ProducerID, error) {
	return []txn.ProducerID{txn.ProducerID(999 + f.n.Add(1))}, nil
}

func (w *world) txn(req txn.Request) txn.Response {
	w.t.Helper()
	r, err := askTxn[txn.Response](w.t.Context(), w.node, req)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

var payer = txn.Client{ID: "payer", Host: "/10.0.0.9"}

// initTxn is a producer's InitProducerId.
func (w *world) initTxn(id string) txn.Producer {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 60_000, -1, -1
	r := w.txn(txn.Init{Client: payer, InitProducerIDRequest: req}).(*kmsg.InitProducerIDResponse)
	if r.ErrorCode != 0 {
		w.t.Fatalf("InitProducerId of %s: %d", id, r.ErrorCode)
	}
	return txn.Producer{ID: txn.ProducerID(r.ProducerID), Epoch: txn.Epoch(r.ProducerEpoch)}
}

// write is what a Produce does to a transaction.
func (w *world) write(id string, p txn.Producer, partitions ...int32) {
	w.t.Helper()
	r := w.txn(txn.AddImplicit{Client: payer, TransactionalID: id, Producer: p, Topics: []txn.Topic{{Name: "orders", Partitions: partitions}}})
	if code := r.(txn.Result).Code; code != 0 {
		w.t.Fatalf("adding to %s: %d", id, code)
	}
}

func (w *world) end(id string, p txn.Producer, commit bool) {
	w.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, int64(p.ID), int16(p.Epoch), commit
	if r := w.txn(txn.End{Client: payer, EndTxnRequest: req, TransactionVersion: 2}).(*kmsg.EndTxnResponse); r.ErrorCode != 0 {
		w.t.Fatalf("ending %s: %d", id, r.ErrorCode)
	}
}

func TestTransactionsAreShown(t *testing.T) {
	w := newWorld(t)
	p := w.initTxn("pay-1")
	other := w.initTxn("pay-2").ID
	w.write("pay-1", p, 0, 1)
	member := w.join("g")
	w.call("Transactions/SendOffsetsToTransaction", `{"transactional_id":"pay-1","producer_id":1000,"producer_epoch":0,"group":{"group":"g","generation":1,"member_id":"`+
		member+`"},"offsets":[{"topic":"orders","offset":3}]}`)
	for filter, want := range map[string]string{
		``:                       `{"transactions":[{"transactional_id":"pay-1","state":"Ongoing","producer_id":"1000"},{"transactional_id":"pay-2","state":"Empty","producer_id":"OTHER"}]}`,
		`"states":["Empty"]`:     `{"transactions":[{"transactional_id":"pay-2","state":"Empty","producer_id":"OTHER"}]}`,
		`"producer_ids":[1000]`:  `{"transactions":[{"transactional_id":"pay-1","state":"Ongoing","producer_id":"1000"}]}`,
		`"pattern":".*-2"`:       `{"transactions":[{"transactional_id":"pay-2","state":"Empty","producer_id":"OTHER"}]}`,
		`"pattern":"pay"`:        `{}`,
		`"longer_than_ms":99999`: `{"transactions":[{"transactional_id":"pay-2","state":"Empty","producer_id":"OTHER"}]}`,
	} {
		want = strings.ReplaceAll(want, "OTHER", strconv.FormatInt(int64(other), 10))
		if got := w.call("Transactions/ListTransactions", `{`+filter+`}`); got != want {
			t.Errorf("%s: %s", filter, got)
		}
	}
	for _, bad := range []string{`{"pattern":"("}`, `{"states":["ongoing"]}`} {
		if st, _ := w.refused("Transactions/ListTransactions", bad); st.Code() != codes.InvalidArgument {
			t.Errorf("%s: %v", bad, st)
		}
	}
	got := w.call("Transactions/DescribeTransactions", `{"transactional_ids":["pay-1","none",""]}`)
	for _, want := range []string{
		`{"transactional_id":"pay-1","exists":true,"state":"Ongoing","producer_id":"1000","owner_client_id":"payer","owner_host":"/10.0.0.9","heard_ms":"`,
		`"timeout_ms":"60000","transaction_version":2,"partitions":[{"topic":"orders","partitions":[0,1]}],"groups":["g"],"offsets_partitions":[`,
		`"pending":"its producer, until 20`, `,{"transactional_id":"none"},{}]}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func TestAFencedProducerIsExplained(t *testing.T) {
	w := newWorld(t)
	old := w.initTxn("pay-1")
	w.initTxn("pay-1")
	w.txn(txn.AddImplicit{Client: txn.Client{ID: "zombie", Host: "/10.0.0.6"}, TransactionalID: "pay-1", Producer: old, Topics: []txn.Topic{{Name: "orders", Partitions: []int32{0}}}})
	got := w.call("Transactions/ExplainTransaction", `{"transactional_id":"pay-1"}`)
	for _, want := range []string{
		`"rule":"init","client_id":"payer","client_host":"/10.0.0.9","producer_id_before":"-1"`, `fencing 1000/0"`,
		`"rule":"refused","client_id":"zombie","client_host":"/10.0.0.6","request":"Produce or TxnOffsetCommit","producer_id_before":"1000"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, id := range []string{"none", "", strings.Repeat("x", 40_000)} {
		if st, _ := w.refused("Transactions/ExplainTransaction", `{"transactional_id":"`+id+`"}`); st.Code() != codes.NotFound {
			t.Errorf("of none: %v", st)
		}
	}
}

func TestAnAbortIsOfThePlansProducer(t *testing.T) {
	w := newWorld(t)
	w.write("pay-1", w.initTxn("pay-1"), 0)
	plan := w.call("Transactions/PlanAbort", `{"transactional_id":"pay-1"}`)
	if want := `{"transactional_id":"pay-1","producer_id":"1000","state":"Ongoing","started_ms":"`; !strings.HasPrefix(plan, want) {
		t.Errorf("%s", plan)
	}
	w.call("Transactions/ApplyAbort", plan)
	got := w.call("Transactions/DescribeTransactions", `{"transactional_ids":["pay-1"]}`)
	if !strings.Contains(got, `"state":"PrepareAbort"`) || !strings.Contains(got, `"pending":"markers of 1 partitions are to be written"`) {
		t.Errorf("aborted: %s", got)
	}
	if got := w.call("Transactions/ExplainTransaction", `{"transactional_id":"pay-1"}`); !strings.Contains(got, `"rule":"admin","client_id":"kcoord-admin"`) {
		t.Errorf("explained: %s", got)
	}
	st, _ := w.refused("Transactions/ApplyAbort", plan) // its producer has been fenced
	if want := `transactional id "pay-1" is not of producer 1000/0 any more`; st.Code() != codes.FailedPrecondition || st.Message() != want {
		t.Errorf("again: %v", st)
	}
	w.call("Transactions/ApplyAbort", w.call("Transactions/PlanAbort", `{"transactional_id":"pay-1"}`)) // its markers are sent again

	w.initTxn("idle")
	p := w.initTxn("done")
	w.write("done", p, 0)
	w.end("done", p, true)
	for req, want := range map[string]codes.Code{
		`"transactional_id":"none"`: codes.NotFound, `"transactional_id":"idle"`: codes.FailedPrecondition, `"transactional_id":"done"`: codes.FailedPrecondition,
		`"transactional_id":"pay-1","producer_id":1,"producer_epoch":1`: codes.FailedPrecondition, `"transactional_id":"pay-1","producer_id":1`: codes.InvalidArgument,
		``: codes.InvalidArgument, `"topic":"orders"`: codes.InvalidArgument, `"topic":"orders","producer_id":1,"producer_epoch":70000`: codes.InvalidArgument,
		`"topic":"orders","producer_id":1,"producer_epoch":0`:               codes.NotFound,
		`"topic":"orders","partition":9,"producer_id":1,"producer_epoch":0`: codes.NotFound,
		`"topic":"orders","transactional_id":"pay-1"`:                       codes.InvalidArgument,
		`"transactional_id":"` + strings.Repeat("x", 40_000) + `"`:          codes.NotFound,
	} {
		if st, _ := w.refused("Transactions/PlanAbort", `{`+req+`}`); st.Code() != want {
			t.Errorf("%.80s: %v, want %v", req, st, want)
		}
	}
}

// TestWhatHangsIsFoundAndAborted: the plane is a cluster with a coordinator of its own, whose
// transactions nobody here knows.
func TestWhatHangsIsFoundAndAborted(t *testing.T) {
	w := newWorld(t)
	if got := w.call("Transactions/FindHanging", `{}`); got != `{}` {
		t.Errorf("nothing hangs: %s", got)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.plane.ListenAddrs()...), kgo.TransactionalID("foreign"), kgo.DefaultProduceTopic("empty"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("v")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := w.call("Transactions/FindHanging", `{}`)
	if !strings.HasPrefix(got, `{"hanging":[{"topic":"empty","producer_id":"`) || !strings.Contains(got, `"abort":"kcoord txns abort --topic empty --partition 0 --producer-id `) {
		t.Fatalf("%s", got)
	}
	if got := w.call("Transactions/FindHanging", `{"partitions":[{"topic":"orders"}]}`); got != `{}` {
		t.Errorf("of another topic: %s", got)
	}
	id, epoch, err := client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan := w.call("Transactions/PlanAbort", fmt.Sprintf(`{"topic":"empty","producer_id":%d,"producer_epoch":%d}`, id, epoch))
	w.call("Transactions/ApplyAbort", plan)
	stable, err := w.broker.ListCommittedOffsets(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := stable.Lookup("empty", 0); o.Offset != 2 { // the record and its marker
		t.Errorf("the last stable offset is %d", o.Offset)
	}
	for _, bad := range []string{`{"producer_id":1}`, `{"producer_id":-1,"transactional_id":"x"}`} {
		if st, _ := w.refused("Transactions/ApplyAbort", bad); st.Code() != codes.InvalidArgument {
			t.Errorf("%s: %v", bad, st)
		}
	}
}

// TestWhatIsOpenHereDoesNotHang: the same producer id is in a transaction here, too.
func TestWhatIsOpenHereDoesNotHang(t *testing.T) {
	w := newWorld(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.plane.ListenAddrs()...), kgo.TransactionalID("foreign"), kgo.DefaultProduceTopic("orders"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Partition: 1}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	theirs, _, err := client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := txn.ProducerID(theirs)
	req := kmsg.NewPtrInitProducerIDRequest()
	name := "ours"
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &name, 60_000, -1, -1
	w.txn(txn.Init{Client: payer, InitProducerIDRequest: req, Fresh: &id})
	ours := txn.Producer{ID: id}
	w.write(name, ours, 0)
	if got := w.call("Transactions/FindHanging", `{}`); !strings.Contains(got, `"transactional_id":"ours"`) {
		t.Errorf("another partition: %s", got)
	}
	w.write(name, ours, 1)
	if got := w.call("Transactions/FindHanging", `{}`); got != `{}` {
		t.Errorf("this one: %s", got)
	}
}

func TestSendOffsetsNamesAMember(t *testing.T) {
	w := newWorld(t)
	w.initTxn("pay-1")
	w.join("g")
	whole := map[string]string{
		"transactional_id": `"transactional_id":"pay-1"`, "producer_id": `"producer_id":1000`, "producer_epoch": `"producer_epoch":0`,
		"group.group": `"group":"g"`, "group.generation": `"generation":1`, "group.member_id": `"member_id":"m"`, "offsets": `"offsets":[{"topic":"orders","offset":3}]`,
	}
	for missing := range whole {
		var outer, inner []string
		for name, text := range whole {
			switch {
			case name == missing:
			case strings.HasPrefix(name, "group."):
				inner = append(inner, text)
			default:
				outer = append(outer, text)
			}
		}
		req := `{` + strings.Join(outer, ",") + `,"group":{` + strings.Join(inner, ",") + `}}`
		if st, _ := w.refused("Transactions/SendOffsetsToTransaction", req); st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), missing+" is missing") {
			t.Errorf("without %s: %v", missing, st)
		}
	}
	if st, _ := w.refused("Transactions/SendOffsetsToTransaction", `{}`); st.Code() != codes.InvalidArgument {
		t.Errorf("nothing at all: %v", st)
	}
	if got := w.call("Transactions/DescribeTransactions", `{"transactional_ids":["pay-1"]}`); !strings.Contains(got, `"state":"Empty"`) {
		t.Errorf("what was refused began a transaction: %s", got)
	}
}

// TestAStaleMemberCommitsNothing: neither while the transaction is open nor after its commit.
func TestAStaleMemberCommitsNothing(t *testing.T) {
	w := newWorld(t)
	p := w.initTxn("pay-1")
	member := w.join("g")
	send := func(generation, member, offset, rest string) string {
		return `{"transactional_id":"pay-1","producer_id":1000,"producer_epoch":0,"group":{"group":"g","generation":` + generation +
			`,"member_id":"` + member + `"` + rest + `},"offsets":[{"topic":"orders","offset":` + offset + `}]}`
	}
	for req, want := range map[string]string{
		send("0", member, "5", ""):                      "ILLEGAL_GENERATION",
		send("7", member, "5", ""):                      "ILLEGAL_GENERATION",
		send("1", "someone-else", "5", ""):              "UNKNOWN_MEMBER_ID",
		send("1", member, "5", `,"instance_id":"none"`): "UNKNOWN_MEMBER_ID",
	} {
		st, details := w.refused("Transactions/SendOffsetsToTransaction", req)
		if st.Code() != codes.FailedPrecondition || !strings.Contains(details, `OffsetsRefused{"group":"g","transactional_id":"pay-1"`) || !strings.Contains(details, want) {
			t.Errorf("%s: %v %s", req, st, details)
		}
	}
	stale := strings.Replace(send("1", member, "5", ""), `"producer_id":1000`, `"producer_id":999`, 1)
	if st, details := w.refused("Transactions/SendOffsetsToTransaction", stale); st.Code() != codes.FailedPrecondition || !strings.Contains(details, "INVALID_PRODUCER_ID_MAPPING") {
		t.Errorf("another producer: %v %s", st, details)
	}
	for req, want := range map[string]codes.Code{
		strings.Replace(send("1", member, "5", ""), "orders", "none", 1): codes.NotFound, send("1", member, "-1", ""): codes.InvalidArgument,
	} {
		if st, _ := w.refused("Transactions/SendOffsetsToTransaction", req); st.Code() != want {
			t.Errorf("%s: %v", req, st)
		}
	}
	w.call("Transactions/SendOffsetsToTransaction", send("1", member, "3", ""))
	if got := w.offsets("g"); got != "" {
		t.Errorf("before the end: %s", got)
	}
	w.end("pay-1", p, true)
	w.settled("pay-1", "CompleteCommit")
	if got := w.offsets("g"); got != "orders-0=3 " {
		t.Errorf("after it: %s", got)
	}
}

// settled waits until the markers of a transaction are written, which needs no broker for groups.
func (w *world) settled(id, state string) {
	w.t.Helper()
	for w.t.Context().Err() == nil {
		r := w.txn(txn.Describe{TransactionalID: id}).(*kmsg.DescribeTransactionsResponseTransactionState)
		if r.State == state {
			return
		}
		ask[group.Observed](w.t, w.node, group.Observe{Group: "g"})
	}
	w.t.Fatalf("%s is not %s", id, state)
}
