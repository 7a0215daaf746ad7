package txn

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/storage"
)

// TestScripts runs testdata: each line is a request, time that passes, or a
// crash, and what is printed are records, effects, answers and what timers did.
// Producers are told by as=ID/EPOCH, or are who the client was told to be.
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
			return h.said()
		})
	})
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

func (s *script) has(word string) bool { return slices.Contains(s.word, word) }

func (s *script) list(key string) []string {
	if v := s.str(key, ""); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

func (s *script) id() string { return s.str("id", "x") }

func (s *script) client() Client {
	return Client{ID: s.str("client", "c"), Host: "/127.0.0.1", Conn: uint64(s.num("conn", 0))}
}

// producer is as=ID/EPOCH, as=+1 or as=-1 of what the client was told, or that.
func (s *script) producer() Producer {
	p, as := s.h.told[s.id()], s.str("as", "")
	id, e, both := strings.Cut(as, "/")
	if !both {
		id, e = "", as
	}
	if id != "" {
		n, _ := strconv.ParseInt(id, 10, 64)
		p.ID = ProducerID(n)
	}
	if n, err := strconv.ParseInt(e, 10, 16); err == nil && both {
		p.Epoch = Epoch(n)
	} else if err == nil {
		p.Epoch += Epoch(n)
	}
	return p
}

// topics are t=a-0,a-1,b-0.
func (s *script) topics() []Topic {
	var ts []Topic
	for _, tp := range s.list("t") {
		i := strings.LastIndex(tp, "-")
		p, err := strconv.ParseInt(tp[i+1:], 10, 32)
		if err != nil {
			s.t.Fatal(err)
		}
		if n := len(ts); n == 0 || ts[n-1].Name != tp[:i] {
			ts = append(ts, Topic{Name: tp[:i]})
		}
		ts[len(ts)-1].Partitions = append(ts[len(ts)-1].Partitions, int32(p))
	}
	return ts
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

// ask sends a request and prints its answer.
func (s *script) ask(req Request) Response {
	resp := s.h.do(req)
	s.h.printf("%s\n", answer(resp))
	return resp
}

var commands map[string]func(*script)

func init() {
	commands = map[string]func(*script){
		"config": (*script).config, "init": (*script).init, "add": (*script).add, "end": (*script).end, "done": (*script).done,
		"add-offsets": (*script).addOffsets, "list": (*script).listTxns, "append": (*script).append, "memory": (*script).memory,
		"epoch": (*script).epoch,
		"implicit": func(s *script) {
			s.ask(AddImplicit{Client: s.client(), TransactionalID: s.id(), Producer: s.producer(), Topics: s.topics()})
		},
		"verify-offsets": func(s *script) {
			s.ask(VerifyOffsets{TransactionalID: s.id(), Producer: s.producer(), Partition: int32(s.num("p", 0))})
		},
		"gone": func(s *script) {
			s.ask(PartitionsGone{TransactionalID: s.id(), Attempt: s.h.markers[s.id()].Attempt, Topics: s.topics()})
		},
		"abort":       (*script).abort,
		"describe":    func(s *script) { s.ask(Describe{s.id()}) },
		"explain":     func(s *script) { s.ask(Explain{s.id()}) },
		"quarantined": func(s *script) { s.ask(Quarantined{}) },
		"advance":     (*script).advance,
		"jump":        func(s *script) { s.h.jump(s.dur("by", 0)) },
		"set-clock":   func(s *script) { s.h.now = s.h.now.Add(s.dur("by", 0)) },
		"crash":       func(s *script) { s.h.open() },
		"state":       func(s *script) { s.h.printf("%s", dump(s.h.m)) },
		"timers":      (*script).timers,
		"counters":    func(s *script) { s.h.printf("%+v\n", s.h.m.Counters()) },
	}
}

func (s *script) config() {
	c := &s.h.cfg
	c.TransactionVersion = int16(s.num("version", int64(c.TransactionVersion)))
	c.FenceStale = s.has("fence-stale")
	c.AbortInterval = s.dur("abort", c.AbortInterval)
	c.Expiration = s.dur("expiration", c.Expiration)
	c.RemoveInterval = s.dur("remove", c.RemoveInterval)
	c.Resident = int(s.num("resident", int64(c.Resident)))
	c.Events = int(s.num("events", int64(c.Events)))
}

// init initialises; with as=ID/EPOCH it expects that, with "own" what it was told.
func (s *script) init() {
	r := kmsg.NewPtrInitProducerIDRequest()
	id := s.id()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = &id, -1, -1
	r.TransactionTimeoutMillis = int32(s.dur("timeout", time.Minute).Milliseconds())
	if _, has := s.args["as"]; has || s.has("own") {
		p := s.producer()
		r.ProducerID, r.ProducerEpoch = int64(p.ID), int16(p.Epoch)
	}
	resp := s.ask(Init{Client: s.client(), InitProducerIDRequest: r}).(*kmsg.InitProducerIDResponse)
	if resp.ErrorCode == none && !s.has("other") {
		s.h.told[id] = Producer{ID: ProducerID(resp.ProducerID), Epoch: Epoch(resp.ProducerEpoch)}
	}
}

// epoch brings an id to an epoch, as that many InitProducerIds would.
func (s *script) epoch() {
	t := *s.h.m.hard.Txn(s.id())
	t.Producer.Epoch = Epoch(s.num("to", 0))
	s.h.apply(state.Record{Kind: state.KindTxn, ID: s.id(), Txn: &t})
	s.h.told[s.id()] = t.Producer
}

func (s *script) add() {
	r := kmsg.NewAddPartitionsToTxnRequestTransaction()
	p := s.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.VerifyOnly = s.id(), int64(p.ID), int16(p.Epoch), s.has("verify")
	for _, t := range s.topics() {
		r.Topics = append(r.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Name, Partitions: t.Partitions})
	}
	s.ask(AddPartitions{Client: s.client(), AddPartitionsToTxnRequestTransaction: &r, Broker: s.has("broker") || s.has("verify")})
}

func (s *script) addOffsets() {
	r := kmsg.NewPtrAddOffsetsToTxnRequest()
	p := s.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = s.id(), int64(p.ID), int16(p.Epoch), "g"
	s.ask(AddOffsets{Client: s.client(), AddOffsetsToTxnRequest: r, Partition: int32(s.num("p", 0))})
}

// end is "end commit" or "end abort", of version v=1 or 2.
func (s *script) end() {
	r := kmsg.NewPtrEndTxnRequest()
	p := s.producer()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = s.id(), int64(p.ID), int16(p.Epoch), s.has("commit")
	resp, is := s.ask(End{Client: s.client(), EndTxnRequest: r, TransactionVersion: int16(s.num("v", 1))}).(*kmsg.EndTxnResponse)
	if is && resp.ProducerID >= 0 && !s.has("other") {
		s.h.told[s.id()] = Producer{ID: ProducerID(resp.ProducerID), Epoch: Epoch(resp.ProducerEpoch)}
	}
}

// done reports the markers sent last as written: all, or t=.
func (s *script) done() {
	a := s.h.markers[s.id()].Attempt
	a.Decided = a.Decided.Add(-s.dur("ago", 0))
	s.ask(MarkersDone{TransactionalID: s.id(), Attempt: a, Topics: s.topics()})
}

func (s *script) abort() {
	r := Abort{Client: s.client(), TransactionalID: s.id()}
	if _, has := s.args["as"]; has {
		p := s.producer()
		r.Only = &p
	}
	s.ask(r)
}

func (s *script) listTxns() {
	r := List{States: s.list("states"), LongerThan: s.dur("longer", -1)}
	for _, p := range s.list("producers") {
		n, _ := strconv.ParseInt(p, 10, 64)
		r.ProducerIDs = append(r.ProducerIDs, n)
	}
	pattern := s.str("pattern", "")
	re, c := Pattern(&pattern)
	if c != none {
		s.h.printf("%s\n", code(c))
		return
	}
	r.Pattern = re
	s.ask(r)
}

func (s *script) advance() {
	d, err := time.ParseDuration(s.word[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.h.advance(d)
}

// append puts a record into the log that this version did not decide on; live has the machine see it.
func (s *script) append() {
	r := state.Record{ID: s.id(), Tombstone: s.has("tombstone")}
	if s.has("unreadable") {
		r.Kind, r.Key, r.Value, r.Problem = state.KindUnreadable, []byte("k"), []byte("v"), errors.New("version 9 is unknown")
	} else if !r.Tombstone {
		status, _ := state.StatusOf(s.str("status", "Empty"))
		p := s.producer()
		r.Txn = &state.Txn{
			Status: status, Producer: p, Previous: ProducerID(s.num("previous", int64(p.ID))), Next: state.NoProducerID, NextEpoch: state.NoEpoch,
			Timeout: s.dur("timeout", time.Minute), Topics: state.TopicsOf(s.topics()...), Version: int16(s.num("v", 0)),
			Updated: s.h.now.Add(-s.dur("age", 0)),
		}
		if status != state.Empty {
			r.Txn.Started = r.Txn.Updated
		}
	}
	if s.has("live") {
		s.h.apply(r)
		return
	}
	s.h.log = append(s.h.log, r)
}

func (s *script) timers() {
	s.h.printf("now %v", since(s.h.now))
	if at, some := s.h.m.NextTimer(); some {
		id, _ := s.h.m.Due()
		s.h.printf(", next %v of %s", since(at), id)
	}
	s.h.printf("; %d deadlines, %d to expire\n", s.h.m.aborts.timers.Len(), s.h.m.expiry.timers.Len())
}

// memory tells what is in memory.
func (s *script) memory() {
	s.h.m.Evict(storage.Offset(len(s.h.log)))
	for _, id := range s.h.m.sorted() {
		e := s.h.m.dir[id]
		s.h.printf("%s in-memory=%v stored=%v %v\n", id, e.inMemory, e.stored, e.status)
	}
	s.h.printf("resident %d, loads %d, events %d\n", s.h.m.resident, s.h.loads, s.h.m.events.Len())
}
