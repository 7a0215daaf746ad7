package group

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/storage"
)

// TestScripts runs testdata: each command is a request, time that passes, or a
// crash, and what is printed are records, answers and what timers did.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		h := newHarness(func(f string, a ...any) { t.Helper(); t.Errorf(f, a...) })
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := script{t: t, h: h}
			for line := range strings.SplitSeq(d.Input, "\n") {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				h.printf("> %s\n", line)
				if line[0] != '#' {
					s.run(line)
				}
			}
			return orOK(h.said())
		})
	})
}

func orOK(s string) string {
	if s == "" {
		return "ok"
	}
	return s
}

type script struct {
	t    *testing.T
	h    *harness
	args map[string]string
	word []string
}

func (s *script) str(key, otherwise string) string {
	if v, ok := s.args[key]; ok {
		return v
	}
	return otherwise
}

func (s *script) num(key string, otherwise int64) int64 {
	n, err := strconv.ParseInt(s.str(key, strconv.FormatInt(otherwise, 10)), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) dur(key string, otherwise time.Duration) time.Duration {
	d, err := time.ParseDuration(s.str(key, otherwise.String()))
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) list(key string) []string {
	if v := s.str(key, ""); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// ptr is a value that may be missing.
func (s *script) ptr(key string) *string {
	if v, ok := s.args[key]; ok {
		return &v
	}
	return nil
}

func (s *script) run(line string) {
	fields := strings.Fields(line)
	s.args, s.word = map[string]string{}, nil
	for _, f := range fields[1:] {
		if k, v, is := strings.Cut(f, "="); is {
			s.args[k] = v
		} else {
			s.word = append(s.word, f)
		}
	}
	run := commands[fields[0]]
	if run == nil {
		s.t.Fatalf("unknown command: %s", line)
	}
	if s.h.m == nil && fields[0] != "config" {
		s.h.open()
	}
	run(s)
}

func (s *script) group() string { return s.str("g", "g") }

// who is the request's name: its member's, if not told another.
func (s *script) who() string { return s.str("as", s.str("m", "c")) }

var commands map[string]func(*script)

func init() {
	commands = map[string]func(*script){
		"config": (*script).config, "join": (*script).join, "sync": (*script).sync, "heartbeat": (*script).heartbeat,
		"leave": (*script).leave, "commit": (*script).commit, "fetch": (*script).fetch, "offset-delete": (*script).offsetDelete,
		"describe":    func(s *script) { s.h.do(s.group(), Describe{s.group()}) },
		"delete":      func(s *script) { s.h.do(s.group(), Delete{s.group()}) },
		"forget":      (*script).forget,
		"list":        func(s *script) { s.h.do("list", List{s.list("states"), s.list("types")}) },
		"ids":         func(s *script) { s.h.do("ids", IDs{}) },
		"quarantined": func(s *script) { s.h.do("quarantined", Quarantined{}) },
		"txn-commit":  (*script).txnCommit,
		"commit-txn":  func(s *script) { s.endTxn(true) },
		"abort-txn":   func(s *script) { s.endTxn(false) },
		"set-offsets": (*script).setOffsets, "census": (*script).census,
		"reconfigure": func(s *script) { s.config(); s.h.m.Configure(s.h.cfg) },
		"jump":        func(s *script) { s.h.jump(s.dur("by", 0)) },
		"observe":     func(s *script) { s.h.do("observe", Observe{s.group()}) },
		"append":      (*script).append, "stable": (*script).stable,
		"advance":  func(s *script) { s.advance() },
		"crash":    func(s *script) { s.h.open() },
		"state":    func(s *script) { s.h.printf("%s", named(s.h, s.h.dump(s.h.m))) },
		"timers":   (*script).timers,
		"memory":   (*script).memory,
		"counters": func(s *script) { s.h.printf("%+v\n", s.h.m.Counters()) },
	}
}

func named(h *harness, s string) string {
	for id, n := range h.ids {
		s = strings.ReplaceAll(s, id, n)
	}
	return s
}

func (s *script) config() {
	c := &s.h.cfg
	c.InitialRebalanceDelay = s.dur("initial-delay", c.InitialRebalanceDelay)
	c.MaxSize = int(s.num("max-size", int64(c.MaxSize)))
	c.Retention = s.dur("retention", c.Retention)
	c.RetentionCheckInterval = s.dur("check", c.RetentionCheckInterval)
	c.MetadataMaxChars = int(s.num("metadata", int64(c.MetadataMaxChars)))
	c.ResidentOffsets = int(s.num("resident", int64(c.ResidentOffsets)))
	s.legacyConfig()
}

func (s *script) join() {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.ProtocolType, r.InstanceID = s.group(), s.str("type", "consumer"), s.ptr("instance")
	r.MemberID = s.h.id(s.str("m", ""))
	r.SessionTimeoutMillis = int32(s.dur("session", 30*time.Second).Milliseconds())
	r.RebalanceTimeoutMillis = int32(s.dur("rebalance", 30*time.Second).Milliseconds())
	for _, p := range strings.Split(s.str("protocols", "range"), ",") {
		name, metadata, is := strings.Cut(p, ":")
		if !is {
			metadata = name
		}
		if topics, ok := s.args["topics"]; ok {
			metadata = subscriptionOf(strings.Split(topics, "+")...)
		}
		if name != "" {
			p := kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte(metadata)}
			if tag, ok := s.args["tag"]; ok {
				p.UnknownTags.Set(7, []byte(tag))
			}
			r.Protocols = append(r.Protocols, p)
		}
	}
	name := s.who()
	v := s.num("v", 9)
	s.h.do(name, Join{Client{s.str("client", name), "/127.0.0.1"}, r, v >= 4, v >= 9})
}

// subscriptionOf is a consumer's subscription to topics.
func subscriptionOf(topics ...string) string {
	b := []byte{0, 1, 0, 0, 0, byte(len(topics))}
	for _, t := range topics {
		b = append(append(b, 0, byte(len(t))), t...)
	}
	return string(append(b, 0xff, 0xff, 0xff, 0xff))
}

func (s *script) sync() {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.MemberID, r.Generation, r.InstanceID = s.group(), s.h.id(s.str("m", "")), int32(s.num("gen", 1)), s.ptr("instance")
	r.ProtocolType, r.Protocol = s.ptr("type"), s.ptr("protocol")
	for _, a := range s.list("assign") {
		m, x, _ := strings.Cut(a, ":")
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: s.h.id(m), MemberAssignment: []byte(x)})
	}
	s.h.do(s.who(), Sync{r})
}

// stable has members, m=a,b/instance, form a stable generation: the first one
// alone, then it and the others. Its commands have the other arguments, too.
func (s *script) stable() {
	before, id, gen := s.h.said(), s.group(), int32(0)
	s.h.seen = func(_ string, resp Response) {
		if j, is := resp.(*kmsg.JoinGroupResponse); is && j.ErrorCode == none {
			gen = j.Generation
		}
	}
	members, extra := s.str("m", ""), ""
	for k, v := range s.args {
		if k != "m" {
			extra += " " + k + "=" + v
		}
	}
	var names, as []string
	sync := func() {
		for i, n := range names {
			line := fmt.Sprintf("sync m=%s%s gen=%d", n, extra, gen)
			if i == 0 {
				line += " assign=" + strings.Join(as, ",")
			}
			s.run(line)
		}
	}
	var again string
	for m := range strings.SplitSeq(members, ",") {
		name, inst, static := strings.Cut(m, "/")
		join := "join m=" + name + extra
		if static {
			s.run("join as=" + name + " instance=" + inst + extra)
			join += " instance=" + inst
		} else {
			s.run("join as=" + name + extra)
			s.run(join)
		}
		names, as = append(names, name), append(as, name+":for-"+name)
		if again == "" {
			again = join
			s.h.advance(0)
			sync()
		}
	}
	if len(names) > 1 {
		s.run(again)
		sync()
	}
	s.h.seen = nil
	s.h.said()
	s.h.printf("%s%s is stable in generation %d: %s\n", before, id, gen, members)
}

func (s *script) heartbeat() {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Group, r.MemberID, r.Generation, r.InstanceID = s.group(), s.h.id(s.str("m", "")), int32(s.num("gen", 1)), s.ptr("instance")
	s.h.do(s.who(), Heartbeat{r})
}

// leave takes members out: m=a, m=a/i, m=/i, several with commas.
func (s *script) leave() {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Group = s.group()
	for _, m := range strings.Split(s.str("m", ""), ",") {
		id, inst, is := strings.Cut(m, "/")
		lm := kmsg.LeaveGroupRequestMember{MemberID: s.h.id(id)}
		if is {
			lm.InstanceID = &inst
		}
		r.Members = append(r.Members, lm)
	}
	s.h.do(s.str("as", "c"), Leave{r})
}

// place splits topic-partition.
func (s *script) place(tp string) (string, int32) {
	i := strings.LastIndex(tp, "-")
	p, err := strconv.ParseInt(tp[i+1:], 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	return tp[:i], int32(p)
}

// commit commits o=t-0:5,t-1:6:metadata:epoch, in the order of topics.
func (s *script) commit() {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.MemberID, r.Generation, r.InstanceID = s.group(), s.h.id(s.str("m", "")), int32(s.num("gen", -1)), s.ptr("instance")
	r.RetentionTimeMillis = -1
	if _, has := s.args["retention"]; has {
		r.RetentionTimeMillis = s.dur("retention", 0).Milliseconds()
	}
	for _, o := range s.list("o") {
		parts := strings.Split(o, ":")
		topic, p := s.place(parts[0])
		cp := kmsg.NewOffsetCommitRequestTopicPartition()
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
			long := strings.Repeat(s.str("of", "x"), int(n))
			cp.Metadata = &long
		}
		i := slices.IndexFunc(r.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic == topic })
		if i < 0 {
			i = len(r.Topics)
			r.Topics = append(r.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, TopicID: s.topicID()})
		}
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, cp)
	}
	s.h.do(s.who(), Commit{r})
}

// forget forgets topics; the topic with that id, if any, has the names now.
func (s *script) forget() {
	r := ForgetTopics{s.group(), map[string][16]byte{}}
	for _, t := range s.list("topics") {
		r.Topics[t] = s.topicID()
	}
	s.h.do(s.group(), r)
}

// topicID is the one that ends in id=n; none: the topic goes by its name.
func (s *script) topicID() (id [16]byte) {
	id[15] = byte(s.num("id", 0))
	return id
}

func (s *script) fetch() {
	r := kmsg.NewOffsetFetchRequestGroup()
	r.Group = s.group()
	for _, o := range s.list("o") {
		topic, p := s.place(o)
		if n := len(r.Topics); n == 0 || r.Topics[n-1].Topic != topic {
			r.Topics = append(r.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, TopicID: s.topicID()})
		}
		t := &r.Topics[len(r.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	s.h.do(s.who(), Fetch{OffsetFetchRequestGroup: &r, RequireStable: slices.Contains(s.word, "stable")})
}

func (s *script) offsetDelete() {
	r := kmsg.NewPtrOffsetDeleteRequest()
	r.Group = s.group()
	for _, o := range s.list("o") {
		topic, p := s.place(o)
		if n := len(r.Topics); n == 0 || r.Topics[n-1].Topic != topic {
			r.Topics = append(r.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic})
		}
		t := &r.Topics[len(r.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
	}
	s.h.do(s.who(), DeleteOffsets{r})
}

// append puts a record into the log that this version did not decide on.
func (s *script) append() {
	r := state.Record{Group: s.group(), Tombstone: slices.Contains(s.word, "tombstone")}
	switch s.word[0] {
	case "unreadable":
		r.Kind, r.Key, r.Value, r.Problem = state.KindUnreadable, []byte(s.str("key", "k")), []byte("v"), errors.New("version 9 is unknown")
	case "other":
		r.Kind, r.Key, r.Value = state.KindOther, []byte{0, byte(s.num("type", 3)), 'k'}, []byte("v")
	case "legacy", "offset":
		tp, o, _ := strings.Cut(s.str("o", ""), ":")
		r.Kind, r.LegacyKey = state.KindOffset, s.word[0] == "legacy"
		r.Topic, r.Partition = s.place(tp)
		r.Offset = state.Offset{LeaderEpoch: -1, Committed: s.h.now.Add(-s.dur("age", 0))}
		r.Offset.Offset, _ = strconv.ParseInt(o, 10, 64)
	case "group":
		r.Kind, r.Classic = state.KindGroup, &state.Classic{ProtocolType: s.str("type", "consumer"), Generation: int32(s.num("gen", 1))}
		if _, has := s.args["age"]; has {
			r.Classic.Since = s.h.now.Add(-s.dur("age", 0))
		}
	default:
		s.t.Fatalf("append %s", s.word[0])
	}
	s.pendingIn(&r)
	if slices.Contains(s.word, "live") {
		s.h.apply(r)
		return
	}
	s.h.log = append(s.h.log, r)
}

func (s *script) advance() {
	d, err := time.ParseDuration(s.word[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.h.advance(d)
}

func (s *script) timers() {
	s.h.printf("now %v", s.h.now.Sub(epoch))
	if at, armed := s.h.m.NextTimer(); armed {
		id, _ := s.h.m.Due()
		s.h.printf(", next %v of %s", at.Sub(epoch), id)
	}
	s.h.printf("; %d timers, %d groups to look at\n", len(s.h.m.timers.Items), len(s.h.m.sweep.Items))
}

// memory tells what is in memory.
func (s *script) memory() {
	s.h.m.Evict(storage.Offset(len(s.h.log)))
	for _, id := range s.h.m.sorted() {
		e := s.h.m.dir[id]
		s.h.printf("%s in-memory=%v live=%v stored=%v weight=%d\n", id, e.inMemory, e.live != nil, e.stored, e.weight)
	}
	s.h.printf("resident %d, loads %d\n", s.h.m.resident, s.h.loads)
}

func sortedStrings(s []string) []string {
	slices.Sort(s)
	return s
}
