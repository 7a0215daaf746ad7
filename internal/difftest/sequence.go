//go:build kafka

package difftest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// inconclusive ends a sequence: Kafka takes the next leader at random.
const inconclusive = "inconclusive"

// sequence is one run of ops against both targets.
type sequence struct {
	prefix       string
	topic        string // its own
	protocolType string
	weird, timed bool
	began        time.Time
	pace         pace
	patient      int  // the slots below have long timeouts all the same
	unwritten    bool // Kafka may have a group that kcoord has not: no record tells of it
	remade       bool // it has topics of its own
	targets      [2]*target
	answers      [2]chan answer
	got          [2]map[int]answer
	told         map[int]bool // compared
	log          []string
}

func newSequence(seed uint64, run int, addrs [2]string, ids [2]map[string][16]byte, weird bool) *sequence {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &sequence{prefix: fmt.Sprintf("dt-%x-%d-%x-", seed, run, time.Now().UnixNano()&0xffffff), protocolType: []string{"consumer", "consumer", "consumer", "connect"}[r.IntN(4)], weird: weird, timed: timed(seed), remade: remade(seed), told: map[int]bool{}, began: time.Now()}
	for i := range s.targets {
		s.targets[i] = &target{addr: addrs[i], members: map[string]string{}, pids: map[int64]string{}, ids: maps.Clone(ids[i]), sequences: map[log]int32{}, asked: map[string]int{}, forgotten: map[int]bool{}, holds: map[int]bool{}}
		for j := range s.targets[i].slots {
			s.targets[i].slots[j].generation = -1
		}
		s.answers[i], s.got[i] = make(chan answer, 1000), map[int]answer{}
	}
	s.topic, s.patient, s.pace.rested = s.prefix+"log", r.IntN(2), s.began
	return s
}

// play returns what differed, "" for nothing, and where; a sequence without a verdict ends before its last op.
func (s *sequence) play(ops []op) (string, int) {
	defer func() {
		for _, t := range s.targets {
			t.close()
		}
	}()
	if slices.ContainsFunc(ops, op.ofLog) {
		for _, t := range s.targets {
			if err := t.makeLog(s.topic); err != nil {
				return err.Error(), 0
			}
			defer t.dropLog(s.topic)
		}
	}
	var before *op
	for i := 0; i < len(ops); i++ {
		from := i
		i += burst(before, ops[i:]) - 1
		o := ops[i]
		before = &ops[i]
		if err := s.perform(from, ops[from:i+1]); err != nil {
			return err.Error(), i
		}
		if o.silent() {
			continue
		}
		if diff := s.settle(from, i, ops); diff == inconclusive {
			return "", i
		} else if diff != "" {
			return diff, i
		}
		if o.kind == "endTxn" || o.kind == "init" || o.kind == "wait" {
			for _, t := range s.targets {
				if err := t.calm(s.prefix); err != nil {
					return err.Error(), i
				}
			}
		}
	}
	return "", len(ops)
}

// perform does what some ops say that go out together, to both targets.
func (s *sequence) perform(i int, ops []op) error {
	switch o := ops[0]; o.kind {
	case "burst":
		return nil
	case "crash":
		s.log = append(s.log, fmt.Sprintf("%3d > kcoord is killed and started again", i))
		for _, t := range s.targets {
			if err := t.tidy(s.prefix); err != nil {
				return err
			}
		}
		return s.targets[1].crash(s.prefix)
	case "wait":
		s.log = append(s.log, fmt.Sprintf("%3d > wait %s", i, outlasts))
		s.wait()
		return nil
	case "makeTopic", "dropTopic", "remakeTopic", "growTopic":
		return s.changeTopic(i, o)
	case "hangup":
		s.log = append(s.log, fmt.Sprintf("%3d > who waits for an answer hangs up", i))
		for _, t := range s.targets {
			t.hangUp()
		}
		return nil
	}
	for j, t := range s.targets {
		if strings.HasPrefix(ops[0].kind, "markers") {
			if err := t.findCoordinator(s.topic); err != nil {
				return err
			}
		}
		var all []outgoing
		for n, o := range ops {
			one := s.sent(i+n, o, t)
			if j == 0 {
				s.log = append(s.log, fmt.Sprintf("%3d %s %s %s", i+n, []string{">", "+"}[min(n, 1)], o, describe(t, one.req, s.prefix)))
			}
			t.holds[i+n] = n < len(ops)-1
			t.parks(i+n, one.req)
			all = append(all, one)
		}
		if err := t.sendAll(all, s.answers[j]); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until both targets have answered the same ops, and compares.
func (s *sequence) settle(from, i int, ops []op) string {
	began, last, slow := time.Now(), time.Now(), s.tooLong()
	parks := slices.ContainsFunc(ops[from:i+1], op.parks)
	quiet := !parks
	for {
		select {
		case a := <-s.answers[0]:
			s.take(0, a)
			last = time.Now()
			continue
		case a := <-s.answers[1]:
			s.take(1, a)
			last = time.Now()
			continue
		case <-time.After(settled):
		}
		if s.targets[0].stuck || s.targets[1].stuck {
			return inconclusive
		}
		odd := s.oneSided()
		_, answered := s.got[0][i]
		if odd < 0 && !answered && !quiet && time.Since(began) > parked {
			there, diff := s.arrived(i, began, slow)
			if diff != "" {
				return diff
			}
			quiet = there
			continue
		}
		if odd < 0 && (answered || parks && quiet) && time.Since(last) >= settled {
			break
		}
		if time.Since(began) > missing {
			if odd < 0 {
				break
			}
			if failed(s.got[1][odd]) { // Kafka will fail, once it writes what it has taken
				return inconclusive
			}
			if sync, ok := s.got[1][odd].resp.(*kmsg.SyncGroupResponse); ok && sync.ErrorCode == 25 {
				s.targets[1].forget(odd) // the member has left; Kafka never answers its sync
				break
			}
			if slow {
				return inconclusive
			}
			j := 0
			if _, ok := s.got[0][odd]; !ok {
				j = 1
			}
			return fmt.Sprintf("op %d was answered by %s alone: %s", odd, []string{"kafka", "kcoord"}[j], s.targets[j].render(s.got[j][odd], s.prefix))
		}
	}
	return s.compare(i, ops)
}

// compare says where answers that have come differ.
func (s *sequence) compare(i int, ops []op) string {
	for n := range ops[:i+1] {
		if _, ok := s.got[0][n]; !ok || s.told[n] || s.targets[0].forgotten[n] || s.targets[1].forgotten[n] {
			continue
		}
		s.told[n] = true
		var shown [2]string
		for j, t := range s.targets {
			t.learn(&ops[n], s.got[j][n])
		}
		s.notePace(s.got[0][n])
		for j, t := range s.targets {
			shown[j] = t.render(s.got[j][n], s.prefix)
		}
		s.log = append(s.log, fmt.Sprintf("%3d < %s", n, shown[0]))
		if s.leadersDiffer(n) {
			return inconclusive
		}
		if shown[0] == shown[1] && failed(s.got[0][n]) { // Kafka has in memory now what it could not write
			return inconclusive
		}
		s.unwritten = s.unwritten || refusedCommit(s.got[0][n])
		if shown[0] != shown[1] && s.unwritten && ops[n].tellsOfGroups() {
			return inconclusive
		}
		if shown[0] != shown[1] && (s.firstUnknown(n) || s.unlooked(n) || s.refusedBefore(n) || s.tooLong()) {
			return inconclusive
		}
		if shown[0] != shown[1] && !s.betterFenced(n) && !s.marked(n) {
			return fmt.Sprintf("op %d: kafka  %s\n        kcoord %s", n, shown[0], shown[1])
		}
	}
	return ""
}

func (s *sequence) take(j int, a answer) {
	s.got[j][a.op] = a
	t := s.targets[j]
	if who := asker(a.req); t.asked[who] == a.op {
		delete(t.asked, who)
	}
	switch {
	case a.err != nil:
		s.targets[j].drop(a.c)
	case !a.more:
		a.c.busy = false
	}
}

func (s *sequence) leadersDiffer(n int) bool {
	var leaders [2]string
	for j, t := range s.targets {
		if r, ok := s.got[j][n].resp.(*kmsg.JoinGroupResponse); ok && r.ErrorCode == 0 {
			leaders[j] = t.name(r.LeaderID)
			if leaders[j] == "«new»" { // which one is not known yet
				return true
			}
		}
	}
	return leaders[0] != "" && leaders[1] != "" && leaders[0] != leaders[1]
}

// betterFenced says whether a commit came after an abort by the coordinator: kcoord tells the producer that it
// is fenced, as Kafka does after 4.4 (KAFKA-20785).
func (s *sequence) betterFenced(n int) bool {
	kafka, is := s.got[0][n].resp.(*kmsg.EndTxnResponse)
	kcoord, _ := s.got[1][n].resp.(*kmsg.EndTxnResponse)
	return is && kcoord != nil && kafka.ErrorCode == kerr.InvalidTxnState.Code && kcoord.ErrorCode == kerr.ProducerFenced.Code
}

// marked says whether a marker was refused by Kafka alone, which keeps every producer's last epoch and coordinator.
func (s *sequence) marked(n int) bool {
	kafka, is := s.got[0][n].resp.(*kmsg.WriteTxnMarkersResponse)
	if !is {
		return false
	}
	for _, m := range kafka.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == kerr.InvalidProducerEpoch.Code || p.ErrorCode == kerr.TransactionCoordinatorFenced.Code {
					return true
				}
			}
		}
	}
	return false
}

func (s *sequence) oneSided() int {
	for j := range s.got {
		for n := range s.got[j] {
			if _, ok := s.got[1-j][n]; !ok && !s.targets[0].forgotten[n] && !s.targets[1].forgotten[n] {
				return n
			}
		}
	}
	return -1
}

func describe(t *target, req any, prefix string) string {
	var b strings.Builder
	t.value(&b, reflectElem(req))
	return strings.ReplaceAll(b.String(), prefix, "")
}

// shrink leaves out ops while the sequence still differs in the same way.
func shrink(ops []op, differs func([]op) bool) []op {
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops); {
			less := append(append([]op{}, ops[:at]...), ops[at+size:]...)
			if differs(less) {
				ops = less
			} else {
				at += size
			}
		}
	}
	return ops
}
