package admin

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
)

func TestListOffsets(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commit("g", 1, 12)
	got := w.call("Offsets/ListOffsets", `{"group":"g"}`)
	want := `{"offsets":[{"topic":"orders","offset":"4","leader_epoch":-1,"start_offset":"2","end_offset":"10","lag":"6"},` +
		`{"topic":"orders","partition":1,"offset":"12","leader_epoch":-1,"start_offset":"0","end_offset":"10","lag":"-2"}]}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := w.call("Offsets/ListOffsets", `{"group":"g","partitions":[{"topic":"orders","partitions":[1]}]}`); strings.Count(got, "topic") != 1 {
		t.Errorf("of one partition: %s", got)
	}
	if st, _ := w.refused("Offsets/ListOffsets", `{"group":"none"}`); st.Code() != codes.NotFound {
		t.Errorf("no such group: %v", st)
	}
	w.plane.Close()
	w.ends.patience = 200 * time.Millisecond
	if got := w.call("Groups/DescribeGroups", `{"groups":["g"],"offsets":true}`); !strings.Contains(got, `"ends_unknown":"the broker`) || !strings.Contains(got, `"offset":"12"`) {
		t.Errorf("without a broker: %s", got)
	}
	if st, _ := w.refused("Offsets/PlanOffsets", `{"group":"g","latest":true}`); st.Code() != codes.Unavailable {
		t.Errorf("a plan without a broker: %v", st)
	}
}

// What a member reads and nothing is committed of is told, too, with where its log ends.
func TestDescribeUncommitted(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.join("g")
	got := w.call("Groups/DescribeGroups", `{"groups":["g"],"offsets":true}`)
	want := `"offsets":[{"topic":"orders","offset":"4","leader_epoch":-1,"start_offset":"2","end_offset":"10","lag":"6"}],` +
		`"uncommitted":[{"topic":"orders","partition":1,"offset":"-1","leader_epoch":-1,"start_offset":"0","end_offset":"10"}]`
	if !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A partition without a leader hides nothing of the others, and is planned nothing for.
func TestOnePartitionWithoutLeader(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commit("g", 1, 5)
	w.ends.patience = 2 * time.Second
	w.plane.ControlKey(3, func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.plane.KeepControl()
		return leaderless(r.(*kmsg.MetadataRequest), w.plane.ListenAddrs()[0]), nil, true
	})
	got := w.call("Offsets/ListOffsets", `{"group":"g"}`)
	for _, part := range []string{`"end_offset":"10","lag":"6"}`, `"partition":1,"offset":"5","leader_epoch":-1}`, `"ends_unknown":"not all partitions can be asked about: LEADER_NOT_AVAILABLE`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if st, _ := w.refused("Offsets/PlanOffsets", `{"group":"g","latest":true}`); st.Code() != codes.Unavailable {
		t.Errorf("a plan: %v", st)
	}
	for _, target := range []string{`"latest":true`, `"timestamp":1`, `"shift_by":1`} {
		w.call("Offsets/PlanOffsets", `{"group":"g","partitions":[{"topic":"orders","partitions":[0]}],`+target+`}`)
		if st, _ := w.refused("Offsets/PlanOffsets", `{"group":"g","partitions":[{"topic":"orders","partitions":[0,1]}],`+target+`}`); st.Code() != codes.Unavailable {
			t.Errorf("a plan of both: %v", st)
		}
	}
}

// leaderless is Metadata of "orders", of which partition 1 has no leader.
func leaderless(req *kmsg.MetadataRequest, addr string) *kmsg.MetadataResponse {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	b := kmsg.NewMetadataResponseBroker()
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	b.Host, b.Port = host, int32(n)
	resp.Brokers = append(resp.Brokers, b)
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.TopicID = kmsg.StringPtr("orders"), [16]byte{1}
	for p := range int32(2) {
		part := kmsg.NewMetadataResponseTopicPartition()
		if part.Partition = p; p == 1 {
			part.Leader, part.ErrorCode = -1, kerr.LeaderNotAvailable.Code
		}
		topic.Partitions = append(topic.Partitions, part)
	}
	resp.Topics = append(resp.Topics, topic)
	return resp
}

// TestPlans: what each target makes of partition 0 (2 to 10, at 4) and 1 (0 to 10, at 12).
func TestPlans(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commit("g", 1, 12)
	change := func(rest0, rest1 string) string {
		return `{"group":"g","state":"Empty","changes":[{"topic":"orders","current":"4"` + rest0 + `},{"topic":"orders","partition":1,"current":"12"` + rest1 + `}]}`
	}
	for _, tc := range []struct{ target, want string }{
		{`"earliest":true`, change(`,"new":"2"`, `,"new":"0"`)},
		{`"shift_by":-13`, change(`,"new":"2","note":"-9 is before the log"`, `,"new":"0","note":"-1 is before the log"`)},
		{`"latest":true`, change(`,"new":"10"`, `,"new":"10"`)},
		{`"offset":1`, change(`,"new":"2","note":"1 is before the log"`, `,"new":"1"`)},
		{`"offset":11`, change(`,"new":"10","note":"11 is after the log"`, `,"new":"10","note":"11 is after the log"`)},
		{`"shift_by":-3`, change(`,"new":"2","note":"1 is before the log"`, `,"new":"9"`)},
		{`"shift_by":"9223372036854775807"`, change(`,"new":"10","note":"9223372036854775807 is after the log"`, `,"new":"10","note":"9223372036854775807 is after the log"`)},
		{`"timestamp":"1700000004500"`, change(`,"new":"5"`, `,"new":"5"`)},
		{`"timestamp":"1800000000000"`, change(`,"new":"10"`, `,"new":"10"`)},
		{`"delete":true`, change(``, ``)},
		{`"set":{"offsets":[{"topic":"orders","partition":1,"offset":3,"metadata":"m","leader_epoch":2}]}`,
			`{"group":"g","state":"Empty","changes":[{"topic":"orders","partition":1,"current":"12","new":"3","leader_epoch":2,"metadata":"m"}]}`},
		{`"earliest":true,"partitions":[{"topic":"empty"}]`, `{"group":"g","state":"Empty","changes":[{"topic":"empty","new":"0"}]}`},
	} {
		if got := w.call("Offsets/PlanOffsets", `{"group":"g",`+tc.target+`}`); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.target, got, tc.want)
		}
	}
	if got := w.offsets("g"); got != "orders-0=4 orders-1=12 " {
		t.Errorf("a plan changed something: %s", got)
	}
	for target, want := range map[string]codes.Code{
		`"group":"g"`: codes.InvalidArgument,
		`"group":"g","latest":true,"partitions":[{"topic":"none"}]`:                        codes.NotFound,
		`"group":"g","latest":true,"partitions":[{"topic":"orders","partitions":[7]}]`:     codes.NotFound,
		`"group":"g","delete":true,"partitions":[{"topic":"empty","partitions":[0]}]`:      codes.NotFound,
		`"group":"g","shift_by":1,"partitions":[{"topic":"empty"}]`:                        codes.FailedPrecondition,
		`"group":"g","timestamp":-1`:                                                       codes.InvalidArgument,
		`"group":"none","latest":true`:                                                     codes.NotFound,
		`"group":"g","set":{"offsets":[{"topic":"orders","offset":-1}]}`:                   codes.InvalidArgument,
		`"group":"g","set":{"offsets":[{"topic":"orders","offset":1},{"topic":"orders"}]}`: codes.InvalidArgument,
		`"group":"g","set":{"offsets":[{"topic":"orders","partition":9,"offset":1}]}`:      codes.NotFound,
		`"group":"g","timestamp":"1","partitions":[{"topic":"none"}]`:                      codes.NotFound,
		`"group":"new","shift_by":1,"partitions":[{"topic":"orders"}]`:                     codes.FailedPrecondition,
	} {
		if st, _ := w.refused("Offsets/PlanOffsets", `{`+target+`}`); st.Code() != want {
			t.Errorf("%s: %v, want %v", target, st, want)
		}
	}
}

func TestAPlanIsAppliedAsItIsOrRefused(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commit("g", 1, 5)
	plan := w.call("Offsets/PlanOffsets", `{"group":"g","latest":true}`)
	w.commit("g", 1, 6) // someone is quicker
	st, details := w.refused("Offsets/ApplyOffsets", plan)
	if want := `OffsetsDiffer{"group":"g","differences":[{"topic":"orders","partition":1,"expected":"5","current":"6"}]}`; st.Code() != codes.FailedPrecondition || details != want {
		t.Errorf("%v %s", st, details)
	}
	if want := `group "g" has changed since the plan was made: orders-1 is at 6, not 5`; st.Message() != want {
		t.Error(st.Message())
	}
	if got := w.offsets("g"); got != "orders-0=4 orders-1=6 " {
		t.Errorf("half of a plan was applied: %s", got)
	}
	w.call("Offsets/ApplyOffsets", w.call("Offsets/PlanOffsets", `{"group":"g","latest":true}`))
	if got := w.offsets("g"); got != "orders-0=10 orders-1=10 " {
		t.Errorf("applied: %s", got)
	}
	w.call("Offsets/ApplyOffsets", w.call("Offsets/PlanOffsets", `{"group":"g","delete":true,"partitions":[{"topic":"orders","partitions":[0]}]}`))
	if got := w.offsets("g"); got != "orders-1=10 " {
		t.Errorf("deleted: %s", got)
	}
	for _, bad := range []string{
		`{"group":"g","changes":[{"topic":"orders","new":1},{"topic":"orders","new":2}]}`, `{"group":"g","changes":[{"topic":"orders","new":-1}]}`,
		`{"group":"g","changes":[{"partition":1,"new":1}]}`, `{"group":"","changes":[]}`,
	} {
		if st, _ := w.refused("Offsets/ApplyOffsets", bad); st.Code() != codes.InvalidArgument {
			t.Errorf("%s: %v", bad, st)
		}
	}
}

// TestNoOffsetsOfNoPartition: a plan that was kept, or written by hand, leaves no offset for a topic that is
// made later.
func TestNoOffsetsOfNoPartition(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commitTo("g", "gone", 0, 5)
	for _, change := range []string{`{"topic":"gone","current":5,"new":1}`, `{"topic":"orders","partition":7,"new":1}`, `{"topic":"none","new":1}`} {
		st, _ := w.refused("Offsets/ApplyOffsets", `{"group":"g","changes":[{"topic":"orders","current":4,"new":1},`+change+`]}`)
		if st.Code() != codes.NotFound || !strings.HasPrefix(st.Message(), "the broker has no partition ") {
			t.Errorf("%s: %v", change, st)
		}
	}
}

// TestApplyWithoutBroker: whether partitions are there is not known then, but what is not may be deleted.
func TestApplyWithoutBroker(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commitTo("g", "gone", 0, 5)
	w.plane.Close()
	w.ends.patience = 200 * time.Millisecond
	if st, _ := w.refused("Offsets/ApplyOffsets", `{"group":"g","changes":[{"topic":"orders","current":4,"new":1}]}`); st.Code() != codes.Unavailable {
		t.Errorf("without a broker: %v", st)
	}
	w.call("Offsets/ApplyOffsets", `{"group":"g","changes":[{"topic":"gone","current":5}]}`)
	if got := w.offsets("g"); got != "orders-0=4 " {
		t.Errorf("the offsets are %s", got)
	}
}

// TestOfSeveralAppliersOneWins: all have the same plan.
func TestOfSeveralAppliersOneWins(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	plan := w.call("Offsets/PlanOffsets", `{"group":"g","latest":true}`)
	var mu sync.Mutex
	won, lost := 0, 0
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := w.try("Offsets/ApplyOffsets", plan)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				lost++
			}
		})
	}
	all.Wait()
	if won != 1 || lost != 19 {
		t.Errorf("%d applied it, %d did not", won, lost)
	}
}

func TestAGroupInUseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	plan := w.call("Offsets/PlanOffsets", `{"group":"g","earliest":true}`)
	member := w.join("g")
	for _, tc := range []struct{ method, req, reads string }{
		{"Offsets/ApplyOffsets", plan, ""},
		{"Offsets/PlanOffsets", `{"group":"g","latest":true}`, ""},
		{"Offsets/PlanOffsets", `{"group":"g","delete":true}`, " and reads orders"},
		{"Groups/DeleteGroup", `{"group":"g"}`, ""},
	} {
		st, details := w.refused(tc.method, tc.req)
		if st.Code() != codes.FailedPrecondition || !strings.HasPrefix(details, `GroupInUse{"group":"g","state":"Stable","members":[{"member_id":"`+member+`"`) ||
			!strings.Contains(st.Message(), `group "g" is in use (Stable)`+tc.reads+": "+member+" (/10.0.0.7)") {
			t.Errorf("%s: %v %s", tc.method, st, details)
		}
	}
	w.leave("g", member)
	w.call("Offsets/ApplyOffsets", plan)
	w.call("Groups/DeleteGroup", `{"group":"g"}`)
	if st, _ := w.refused("Groups/DeleteGroup", `{"group":"g"}`); st.Code() != codes.NotFound {
		t.Errorf("deleted twice: %v", st)
	}
}

// TestWhatNobodyReadsMayGo: offsets of topics that a group in use has left behind, which would be shown
// with a lag for ever, may be deleted (KIP-496).
func TestWhatNobodyReadsMayGo(t *testing.T) {
	w := newWorld(t)
	w.commit("g", 0, 4)
	w.commitTo("g", "returns", 0, 5)
	w.commitTo("g", "returns", 1, 6)
	member := w.join("g")
	plan := w.call("Offsets/PlanOffsets", `{"group":"g","delete":true,"partitions":[{"topic":"returns","partitions":[0]}]}`)
	if got := w.offsets("g"); got != "orders-0=4 returns-0=5 returns-1=6 " {
		t.Errorf("after a plan the offsets are %s", got)
	}
	w.call("Offsets/ApplyOffsets", plan)
	if got := w.offsets("g"); got != "orders-0=4 returns-1=6 " {
		t.Errorf("afterwards the offsets are %s", got)
	}
	if st, details := w.refused("Offsets/PlanOffsets", `{"group":"g","delete":true}`); !strings.Contains(st.Message(), "and reads orders: "+member) {
		t.Errorf("deleting all: %v %s", st, details)
	}
}
