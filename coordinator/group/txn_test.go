package group

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// legacyPolicies are the settings' names of policies.
var legacyPolicies = map[string]LegacyPolicy{"deny": DenyLegacy, "warn": WarnLegacy, "allow": AllowLegacy}

// legacyConfig takes legacy=allow and legacy-of=g:deny,h:warn.
func (s *script) legacyConfig() {
	if name, set := s.args["legacy"]; set {
		s.h.cfg.LegacyTxnCommit = s.policy(name)
	}
	for _, own := range s.list("legacy-of") {
		group, name, _ := strings.Cut(own, ":")
		if s.h.cfg.LegacyTxnCommitOf == nil {
			s.h.cfg.LegacyTxnCommitOf = map[string]LegacyPolicy{}
		}
		s.h.cfg.LegacyTxnCommitOf[group] = s.policy(name)
	}
}

func (s *script) policy(name string) LegacyPolicy {
	p, known := legacyPolicies[name]
	if !known {
		s.t.Fatalf("unknown policy %s", name)
	}
	return p
}

// txnCommit commits o=t-0:5 as commit does, with the transaction of pid=7 pe=0.
func (s *script) txnCommit() {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.Group, r.MemberID, r.Generation, r.InstanceID = s.group(), s.h.id(s.str("m", "")), int32(s.num("gen", -1)), s.ptr("instance")
	r.ProducerID, r.ProducerEpoch = s.num("pid", 7), int16(s.num("pe", 0))
	fences := s.num("v", 3) >= 3
	if !fences { // the request has no place for them
		r.MemberID, r.Generation, r.InstanceID = "", -1, nil
	}
	for _, o := range s.list("o") {
		parts := strings.Split(o, ":")
		topic, p := s.place(parts[0])
		cp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		cp.Partition = p
		cp.Offset, _ = strconv.ParseInt(parts[1], 10, 64)
		if len(parts) > 2 {
			cp.Metadata = &parts[2]
		}
		if len(parts) > 3 {
			epoch, _ := strconv.Atoi(parts[3])
			cp.LeaderEpoch = int32(epoch)
		}
		if n := s.num("long", 0); n > 0 {
			long := strings.Repeat("x", int(n))
			cp.Metadata = &long
		}
		i := slices.IndexFunc(r.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool { return t.Topic == topic })
		if i < 0 {
			i = len(r.Topics)
			r.Topics = append(r.Topics, kmsg.TxnOffsetCommitRequestTopic{Topic: topic, TopicID: s.topicID()})
		}
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, cp)
	}
	s.h.do(s.who(), TxnCommit{r, fences})
}

// endTxn sends the marker of pid=7 pe=0.
func (s *script) endTxn(commit bool) {
	s.h.do("marker", Marker{Producer: s.num("pid", 7), Epoch: int16(s.num("pe", 0)), Commit: commit, CoordinatorEpoch: 5, TransactionVersion: int16(s.num("v", 0))})
}

// pendingIn makes what is appended part of the transaction that pid= names.
func (s *script) pendingIn(r *state.Record) {
	if _, is := s.args["pid"]; is {
		r.Txn = storage.Txn{Producer: s.num("pid", 7), Epoch: int16(s.num("pe", 0)), Kind: storage.Pending}
	}
}

func txnCommitted(r TxnCommitted) string {
	s := "txn-commit"
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			s += fmt.Sprintf(" %s-%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
		}
	}
	return s + [...]string{LegacyNot: "", LegacyAllowed: " (legacy)", LegacyWarned: " (legacy, warn)", LegacyDenied: " (legacy, denied)"}[r.Legacy]
}

// inTxn tells of the transaction that a record is part of.
func inTxn(r state.Record) string {
	if r.Txn.Kind == storage.Pending {
		return fmt.Sprintf(" pending in %d/%d", r.Txn.Producer, r.Txn.Epoch)
	}
	return ""
}

func markerRecord(r state.Record) string {
	end := "commit"
	if r.Txn.Kind == storage.Abort {
		end = "abort"
	}
	return fmt.Sprintf("record: %s of %d/%d by coordinator epoch %d", end, r.Txn.Producer, r.Txn.Epoch, r.CoordinatorEpoch)
}

// TestPendingStaysInMemory: whatever else is evicted.
func TestPendingStaysInMemory(t *testing.T) {
	h := newHarness(t.Errorf)
	h.cfg.ResidentOffsets, h.cfg.LegacyTxnCommit = 1, AllowLegacy
	s := script{t: t, h: h}
	h.open()
	for i := range 20 {
		s.run(fmt.Sprintf("txn-commit g=%d o=t-0:1 pid=%d", i, i%2))
	}
	for i := range 20 {
		s.run(fmt.Sprintf("commit g=plain-%d o=t-0:1", i))
	}
	for round := range 2 { // as they came, and as they are loaded
		for i := range 20 {
			if !h.m.Has(fmt.Sprint(i)) {
				t.Fatalf("round %d: group %d is not in memory", round, i)
			}
			if i < 19 && h.m.Has(fmt.Sprint("plain-", i)) {
				t.Fatalf("round %d: group plain-%d is in memory", round, i)
			}
		}
		s.run("crash")
	}
	s.run("commit-txn pid=0")
	s.run("abort-txn pid=1")
	s.run("fetch g=other")
	if n := h.m.resident; n > 2 {
		t.Fatalf("%d are in memory", n)
	}
}
