//go:build kafka

package difftest

import (
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	kafka        = flag.String("kafka", "", "HOST:PORT of a real Kafka")
	kcoord       = flag.String("kcoord", "", "HOST:PORT of kcoord in front of it")
	count        = flag.Int("sequences", 500, "how many sequences")
	seed         = flag.Uint64("seed", uint64(time.Now().UnixNano()>>20), "seed of the first sequence")
	length       = flag.Int("length", 25, "ops in a sequence")
	repeats      = flag.Int("repeats", 3, "how often a difference is looked for again before it counts as a matter of timing")
	transactions = flag.Bool("transactions", false, "of transactions alone")
	weird        = flag.Bool("weird", false, "with strings that nobody uses")
)

func init() {
	flag.StringVar(&restart, "restart", "", "shell command that kills kcoord with -9 and starts it again: sequences are then of what outlives that, one at a time")
}

func TestDifferences(t *testing.T) {
	if *kafka == "" || *kcoord == "" {
		t.Skip("needs -kafka and -kcoord")
	}
	ids := [2]map[string][16]byte{topics(t, *kafka), topics(t, *kcoord)}
	producesUpTo = producesAt(t, *kcoord)
	t.Logf("seed %d", *seed)
	seeds := make(chan uint64)
	found := findings{kinds: map[string]int{}}
	var players sync.WaitGroup
	at := 8
	if restart != "" {
		at = 1
	}
	for range at {
		players.Go(func() {
			for sd := range seeds {
				found.look(t, sd, ids)
			}
		})
	}
	for i := range *count {
		seeds <- *seed + uint64(i)
	}
	close(seeds)
	players.Wait()
	t.Logf("%d sequences, of which %d without a verdict, with %d ops left", *count, found.givenUp, found.left)
	for k, n := range found.kinds {
		t.Logf("%d times: %s", n, k)
	}
}

// findings counts differences by kind, so that each is shown a few times only.
type findings struct {
	mu    sync.Mutex
	kinds map[string]int

	givenUp, left int
}

const shownOfAKind = 3

// noVerdict counts sequences that were given up, and the ops that were not played.
func (f *findings) noVerdict(left int) {
	if left == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.givenUp++
	f.left += left
}

// look plays one sequence and, where the answers differ, makes it short.
func (f *findings) look(t *testing.T, seed uint64, ids [2]map[string][16]byte) {
	runs := 0
	run := func(ops []op) (diff string, s *sequence, at int) {
		s = newSequence(seed, runs, [2]string{*kafka, *kcoord}, ids, *weird)
		runs++
		diff, at = s.play(ops)
		return diff, s, at
	}
	ops := generate(seed, *length)
	diff, first, at := run(ops)
	if diff == "" {
		f.noVerdict(len(ops) - at)
		return
	}
	ops = ops[:at+1]
	again := ""
	for n := 0; n < *repeats && again == ""; n++ { // it may have been slow, or depend on the order of ids
		again, _, _ = run(ops)
	}
	if again == "" {
		t.Logf("seed %d: once only: %s\n%s", seed, diff, strings.Join(first.log, "\n"))
		return
	}
	ops = shrink(ops, func(less []op) bool { d, _, _ := run(less); return d != "" && kind(d) == kind(again) })
	last, s, _ := run(ops)
	if last == "" {
		t.Logf("seed %d: not always: %s\n%s", seed, again, strings.Join(s.log, "\n"))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kinds[kind(last)]++; f.kinds[kind(last)] <= shownOfAKind {
		t.Errorf("seed %d:\n%s\n%s", seed, strings.Join(s.log, "\n"), last)
	}
}

// kind is a difference without its particulars.
func kind(diff string) string {
	if i := strings.Index(diff, ":"); i > 0 {
		diff = diff[i:]
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, diff)
}

// topics makes the topics that ops commit offsets of, and returns their ids.
func topics(t *testing.T, addr string) map[string][16]byte {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := kmsg.NewPtrCreateTopicsRequest()
	c.Version, c.TimeoutMillis = 7, 5000
	for name, n := range map[string]int32{"dt-a": 4, "dt-b": 1} {
		ct := kmsg.NewCreateTopicsRequestTopic()
		ct.Topic, ct.NumPartitions, ct.ReplicationFactor = name, n, 1
		c.Topics = append(c.Topics, ct)
	}
	if _, err := roundTrip(nc, c, encode(c, 1, nil)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []int8{0, 1} { // makes __consumer_offsets and __transaction_state
		await(t, "no coordinator", func() bool {
			f := kmsg.NewPtrFindCoordinatorRequest()
			f.Version, f.CoordinatorKey, f.CoordinatorType = 3, "g", kind
			resp, err := roundTrip(nc, f, encode(f, 2, nil))
			if err != nil {
				t.Fatal(err)
			}
			return resp.(*kmsg.FindCoordinatorResponse).ErrorCode == 0
		})
	}
	await(t, "the transaction coordinator does not come", func() bool {
		d := kmsg.NewPtrDescribeTransactionsRequest()
		for i := range 50 { // some in each partition
			d.TransactionalIDs = append(d.TransactionalIDs, fmt.Sprint("t", i))
		}
		resp, err := roundTrip(nc, d, encode(d, 2, nil))
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(resp.(*kmsg.DescribeTransactionsResponse).TransactionStates, func(s kmsg.DescribeTransactionsResponseTransactionState) bool {
			return s.ErrorCode != kerr.TransactionalIDNotFound.Code
		})
	})
	await(t, "no producer id", func() bool {
		i := kmsg.NewPtrInitProducerIDRequest()
		i.TransactionTimeoutMillis = 1000
		resp, err := roundTrip(nc, i, encode(i, 2, nil))
		if err != nil {
			t.Fatal(err)
		}
		return resp.(*kmsg.InitProducerIDResponse).ErrorCode == 0
	})
	ids := map[string][16]byte{}
	await(t, "topics did not come", func() bool {
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 12
		resp, err := roundTrip(nc, m, encode(m, 2, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, mt := range resp.(*kmsg.MetadataResponse).Topics {
			ids[*mt.Topic] = mt.TopicID
		}
		return ids["dt-b"] != [16]byte{} && ids["dt-a"] != [16]byte{}
	})
	return ids
}

// producesAt asks up to which version Produce is served.
func producesAt(t *testing.T, addr string) int16 {
	resp, err := askOnce(addr, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		t.Fatal(err)
	}
	keys := resp.(*kmsg.ApiVersionsResponse).ApiKeys
	return keys[slices.IndexFunc(keys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == 0 })].MaxVersion
}

func await(t *testing.T, otherwise string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}
