//go:build kafka

package difftest

import (
	"flag"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	kafka   = flag.String("kafka", "", "HOST:PORT of a real Kafka")
	kcoord  = flag.String("kcoord", "", "HOST:PORT of kcoord in front of it")
	count   = flag.Int("sequences", 500, "how many sequences")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()>>20), "seed of the first sequence")
	length  = flag.Int("length", 25, "ops in a sequence")
	repeats = flag.Int("repeats", 3, "how often a difference is looked for again before it counts as a matter of timing")
	weird   = flag.Bool("weird", false, "with strings that nobody uses")
)

func init() {
	flag.StringVar(&restart, "restart", "", "shell command that kills kcoord with -9 and starts it again: sequences are then of what outlives that, one at a time")
}

func TestDifferences(t *testing.T) {
	if *kafka == "" || *kcoord == "" {
		t.Skip("needs -kafka and -kcoord")
	}
	ids := topics(t)
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
	for k, n := range found.kinds {
		t.Logf("%d times: %s", n, k)
	}
}

// findings counts differences by kind, so that each is shown a few times only.
type findings struct {
	mu    sync.Mutex
	kinds map[string]int
}

const shownOfAKind = 3

// look plays one sequence and, where the answers differ, makes it short.
func (f *findings) look(t *testing.T, seed uint64, ids map[string][16]byte) {
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
func topics(t *testing.T) map[string][16]byte {
	nc, err := net.Dial("tcp", *kafka)
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
	for range 50 { // makes __consumer_offsets
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.Version, f.CoordinatorKey = 3, "g"
		resp, err := roundTrip(nc, f, encode(f, 2, nil))
		if err != nil {
			t.Fatal(err)
		}
		if resp.(*kmsg.FindCoordinatorResponse).ErrorCode == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	ids := map[string][16]byte{}
	for range 50 {
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 12
		resp, err := roundTrip(nc, m, encode(m, 2, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, mt := range resp.(*kmsg.MetadataResponse).Topics {
			ids[*mt.Topic] = mt.TopicID
		}
		if ids["dt-b"] != [16]byte{} && ids["dt-a"] != [16]byte{} {
			return ids
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("topics did not come")
	return nil
}
