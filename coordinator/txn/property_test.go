package txn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/coordinator/shard/shardtest"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

type (
	harness = shardtest.Harness[txn.Request, state.Record, txn.Response, txn.Effect]
	checked = shardtest.Checked[txn.Request, state.Record, txn.Response, txn.Effect]
	output  = machine.Output[state.Record, txn.Response, txn.Effect]
)

// spy remembers the effects that a machine decides on by how a harness says that they leave.
type spy struct {
	checked
	effects map[string]txn.Effect
}

func (s spy) look(out *output) {
	for _, e := range out.Effects {
		s.effects[fmt.Sprintf("effect %+v", e)] = e
	}
}

func (s spy) Handle(now time.Time, in machine.Input[txn.Request], out *output) {
	s.checked.Handle(now, in, out)
	s.look(out)
}

func (s spy) Fire(now time.Time, out *output) {
	s.checked.Fire(now, out)
	s.look(out)
}

func (s spy) Loaded(now time.Time, id string, out *output) {
	s.checked.Loaded(now, id, out)
	s.look(out)
}

// producer is a client: it knows what it was told, sends one request at a time, and
// sends it again if a crash took the answer.
type producer struct {
	id      string
	name    string
	version int16
	me      txn.Producer // NoProducer: it has to initialise
	conn    uint64
	busy    bool
	open    bool // partitions were added, as it was told
	again   txn.Request
}

type world struct {
	t        *rapid.T
	h        *harness
	cfg      txn.Config
	effects  map[string]txn.Effect
	clients  []*producer
	seq      int
	conns    uint64
	fresh    txn.ProducerID
	then     map[string]func(txn.Response)
	markers  []txn.SendMarkers // that left, each time they did
	wants    []txn.WantsProducerID
	decided  map[string]bool                 // attempt → commit
	reported map[string]bool                 // attempts of which all markers were reported
	holders  map[txn.Producer]*producer      // who was told that it is this
	commits  map[string]map[txn.Producer]int // id → producers whose commit was acknowledged
}

// TestAnyScriptOfProducersKeepsItsPromises plays random scripts of producers of
// both transaction versions, with crashes, timeouts, failing appends, lost answers and late,
// partial and repeated reports of markers. What holds: decisions leave hard state alone (checked
// panics); where all is durable, live is what a replay gives; nobody gets a
// second answer (the harness panics); no two clients are the same producer; epochs do not go back
// and given-up ids do not come back; every state follows the one before by the
// table; an attempt is either commit or abort; nothing completes before its own markers are
// reported; acknowledged commits are committed; and in the end nothing is stuck.
func TestAnyScriptOfProducersKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t: t, effects: map[string]txn.Effect{}, fresh: 999, then: map[string]func(txn.Response){},
			decided: map[string]bool{}, reported: map[string]bool{}, holders: map[txn.Producer]*producer{},
			commits: map[string]map[txn.Producer]int{},
			cfg: txn.Config{
				MaxTimeout: 15 * time.Minute, AbortInterval: 200 * time.Millisecond, Expiration: 40 * time.Minute, RemoveInterval: 10 * time.Minute,
				TransactionVersion: rapid.SampledFrom([]int16{1, 2}).Draw(t, "transaction.version"),
				FenceStale:         rapid.Bool().Draw(t, "fence stale"), Resident: 1, Events: 20,
			},
		}
		// What a finalized version does not write must not be live.
		v := rapid.SampledFrom(slices.Collect(metadataversion.All())).Draw(t, "metadata.version")
		levels := metadataversion.Defaults(v)
		if most := &levels[metadataversion.TransactionVersion]; *most < w.cfg.TransactionVersion {
			w.cfg.TransactionVersion = 1
		} else {
			*most = w.cfg.TransactionVersion
		}
		w.h = shardtest.New(shardtest.Options[txn.Request, state.Record, txn.Response, txn.Effect]{
			Index: state.Index, Codec: &state.Codec{Versions: metadataversion.Writes(v, levels)},
			New: func() machine.Machine[txn.Request, state.Record, txn.Response, txn.Effect] {
				return spy{checked{Dumper: txn.New(w.cfg)}, w.effects}
			},
		})
		w.h.Answered = func(name string, r txn.Response, err error) {
			if f := w.then[name]; f != nil {
				if err != nil {
					r = nil
				}
				f(r)
			}
		}
		if rapid.Bool().Draw(t, "last epochs") {
			w.seed(t)
		}
		for i := range 5 {
			c := &producer{id: []string{"x", "y"}[i%2], name: fmt.Sprint("c", i), me: state.NoProducer, version: 1}
			if w.cfg.TransactionVersion == 2 && i > 1 {
				c.version = 2
			}
			w.clients = append(w.clients, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"init":      func(t *rapid.T) { w.init(w.pick(t), rapid.Bool().Draw(t, "own")) },
			"begin":     func(t *rapid.T) { w.begin(w.pick(t), t) },
			"commit":    func(t *rapid.T) { w.end(w.pick(t), true) },
			"end":       func(t *rapid.T) { w.end(w.pick(t), rapid.Bool().Draw(t, "commit")) },
			"report":    func(t *rapid.T) { w.report(t) },
			"late":      func(t *rapid.T) { w.late(t) },
			"reconnect": func(t *rapid.T) { w.pick(t).conn = 0 },
			"abort": func(t *rapid.T) {
				w.ask(txn.Abort{TransactionalID: w.pick(t).id, Fresh: w.next()}, func(txn.Response) {})
			},
			"look": func(t *rapid.T) {
				w.ask(txn.Explain{TransactionalID: w.pick(t).id}, nil)
				w.ask(txn.List{LongerThan: -1}, nil)
			},
			"durable": func(*rapid.T) { w.h.Sync() },
			"hold":    func(*rapid.T) { w.h.Log.Hold() },
			"release": func(t *rapid.T) { w.h.Log.Release(rapid.IntRange(1, 3).Draw(t, "steps")); w.h.Sync() },
			"fail":    func(t *rapid.T) { w.h.Log.FailNext(errors.New("injected"), rapid.Bool().Draw(t, "written")) },
			"advance": func(t *rapid.T) {
				w.h.Advance(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 20 * time.Second, 30 * time.Minute}).Draw(t, "by"))
			},
			"crash": func(*rapid.T) { w.crash() },
			"":      func(t *rapid.T) { w.t = t; w.heed(); w.compare() },
		})
		w.t = t
		w.settle()
		w.checkLog()
	})
}

func (w *world) pick(t *rapid.T) *producer { return rapid.SampledFrom(w.clients).Draw(t, "client") }

func (w *world) ask(req txn.Request, then func(txn.Response)) string {
	w.seq++
	name := fmt.Sprintf("q%d", w.seq)
	w.then[name] = then
	w.h.Ask(name, req)
	return name
}

func (w *world) next() *txn.ProducerID {
	w.fresh++
	id := w.fresh
	return &id
}

// send sends a client's request; whatever it was told, or not, it may then send another.
func (w *world) send(c *producer, req txn.Request, then func(txn.Response)) {
	if c.busy {
		return
	}
	c.busy, c.again = true, req
	w.ask(req, func(r txn.Response) {
		c.busy = false
		switch r.(type) {
		case nil: // lost: it may have happened
			return
		case txn.NeedProducerID:
			w.send(c, w.withFresh(req), then)
			return
		case txn.Stale:
			if !w.cfg.FenceStale {
				w.t.Fatalf("%s is told that its connection is stale", c.name)
			}
			c.conn = 0
			return
		}
		then(r)
	})
}

func (w *world) withFresh(req txn.Request) txn.Request {
	switch r := req.(type) {
	case txn.Init:
		r.Fresh = w.next()
		return r
	case txn.End:
		r.Fresh = w.next()
		return r
	}
	w.t.Fatalf("%T needs a producer id", req)
	return nil
}

func (c *producer) client(w *world) txn.Client {
	if c.conn == 0 {
		w.conns++
		c.conn = w.conns
	}
	return txn.Client{ID: c.name, Host: "/h", Conn: c.conn}
}

// granted: the client is a producer now, and nobody else is the same.
func (w *world) granted(c *producer, id int64, epoch int16) {
	p := txn.Producer{ID: txn.ProducerID(id), Epoch: txn.Epoch(epoch)}
	if other := w.holders[p]; other != nil && other != c {
		w.t.Fatalf("%s is told to be %v, as %s was", c.name, p, other.name)
	}
	if p.Epoch.Fences() {
		w.t.Fatalf("%s is told to be %v", c.name, p)
	}
	w.holders[p] = c
	c.me, c.open = p, false
}

func (w *world) init(c *producer, own bool) {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = &c.id, 10_000, -1, -1
	if own {
		r.ProducerID, r.ProducerEpoch = int64(c.me.ID), int16(c.me.Epoch)
	}
	w.send(c, txn.Init{Client: c.client(w), InitProducerIDRequest: r}, func(r txn.Response) {
		switch resp := r.(*kmsg.InitProducerIDResponse); resp.ErrorCode {
		case 0:
			w.granted(c, resp.ProducerID, resp.ProducerEpoch)
		case 90:
			c.me = state.NoProducer
		case 51:
		default:
			w.t.Fatalf("%s: init: %d", c.name, resp.ErrorCode)
		}
	})
}

func (w *world) begin(c *producer, t *rapid.T) {
	if c.me == state.NoProducer {
		return
	}
	partition := rapid.Int32Range(0, 2).Draw(t, "partition")
	added := func(code int16) {
		switch code {
		case 0:
			c.open = true
		case 49, 90:
			c.me, c.open = state.NoProducer, false
		case 51:
		default:
			w.t.Fatalf("%s: add: %d", c.name, code)
		}
	}
	switch {
	case c.version == 2:
		w.send(c, txn.AddImplicit{Client: c.client(w), TransactionalID: c.id, Producer: c.me, Topics: []txn.Topic{{Name: "t", Partitions: []int32{partition}}}},
			func(r txn.Response) { added(r.(txn.Result).Code) })
	case partition == 0:
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = c.id, int64(c.me.ID), int16(c.me.Epoch), "g"
		w.send(c, txn.AddOffsets{Client: c.client(w), AddOffsetsToTxnRequest: r, Partition: 7},
			func(r txn.Response) { added(r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode) })
	default:
		r := kmsg.NewAddPartitionsToTxnRequestTransaction()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch = c.id, int64(c.me.ID), int16(c.me.Epoch)
		r.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "t", Partitions: []int32{partition, 9}}}
		w.send(c, txn.AddPartitions{Client: c.client(w), AddPartitionsToTxnRequestTransaction: &r},
			func(r txn.Response) {
				added(r.(*kmsg.AddPartitionsToTxnResponseTransaction).Topics[0].Partitions[0].ErrorCode)
			})
	}
}

// end ends a transaction, or sends again how the last was ended if the answer was lost.
func (w *world) end(c *producer, commit bool) {
	if c.me == state.NoProducer {
		return
	}
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = c.id, int64(c.me.ID), int16(c.me.Epoch), commit
	if last, is := c.again.(txn.End); is {
		r.Commit = last.Commit
	}
	was, open := c.me, c.open
	w.send(c, txn.End{Client: c.client(w), EndTxnRequest: r, TransactionVersion: c.version}, func(resp txn.Response) {
		switch e := resp.(*kmsg.EndTxnResponse); e.ErrorCode {
		case 0:
			if r.Commit && open {
				if w.commits[c.id] == nil {
					w.commits[c.id] = map[txn.Producer]int{}
				}
				w.commits[c.id][was]++
			}
			c.open, c.again = false, nil
			if c.version == 2 {
				w.granted(c, e.ProducerID, e.ProducerEpoch)
			}
		case 49, 90:
			c.me, c.open, c.again = state.NoProducer, false, nil
		case 48:
			c.open, c.again = false, nil
		case 51:
		default:
			w.t.Fatalf("%s: end: %d", c.name, e.ErrorCode)
		}
	})
}

// seed has ids whose producers are in their last epochs, as a log of long ago may.
func (w *world) seed(t *rapid.T) {
	log, err := w.h.Log.Open(0, func(storage.Offset, error) {})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"x", "y"} {
		n := state.New(txn.ProducerID(i), time.Minute, w.h.Now)
		n.Producer.Epoch = txn.Epoch(rapid.Int16Range(32763, 32767).Draw(t, "epoch of "+id))
		k, v, _ := (&state.Codec{}).Append(nil, nil, &state.Record{Kind: state.KindTxn, ID: id, Txn: &n})
		if err := log.Append([]storage.Record{{Key: k, Value: v, Time: w.h.Now}}); err != nil {
			t.Fatal(err)
		}
	}
	w.h.Sync()
}

func (w *world) crash() {
	w.h.Crash()
	for _, c := range w.clients { // their connections are gone
		c.busy, c.conn = false, 0
	}
	w.markers, w.wants = nil, nil
	clear(w.then)
	w.h.Said = nil
}

// heed takes note of the effects that have left.
func (w *world) heed() {
	said := w.h.Said
	w.h.Said = nil
	for _, line := range said {
		switch e := w.effects[line].(type) {
		case txn.SendMarkers:
			key := attempt(e.TransactionalID, e.Attempt)
			if commit, known := w.decided[key]; known && commit != e.Commit {
				w.t.Fatalf("%s is commit and abort", key)
			}
			w.decided[key] = e.Commit
			w.markers = append(w.markers, e)
		case txn.WantsProducerID:
			w.wants = append(w.wants, e)
		}
	}
	for _, e := range w.wants {
		e.Abort.Fresh = w.next()
		w.ask(e.Abort, nil)
	}
	w.wants = nil
}

func attempt(id string, a txn.Attempt) string {
	return fmt.Sprintf("%s %v at %d", id, a.Producer, a.Decided.UnixMilli())
}

// report reports some or all markers of something that was decided, some time ago perhaps.
func (w *world) report(t *rapid.T) {
	if len(w.markers) == 0 {
		return
	}
	e := rapid.SampledFrom(w.markers).Draw(t, "markers")
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		some := e.Topics[:rapid.IntRange(1, len(e.Topics)).Draw(t, "topics")]
		if len(some) == len(e.Topics) {
			w.reported[attempt(e.TransactionalID, e.Attempt)] = true
		}
		w.parts(e, some)
		w.ask(txn.MarkersDone{TransactionalID: e.TransactionalID, Attempt: e.Attempt, Topics: some}, nil)
	case 1:
		w.reported[attempt(e.TransactionalID, e.Attempt)] = true
		w.ask(txn.PartitionsGone{TransactionalID: e.TransactionalID, Attempt: e.Attempt, Topics: e.Topics}, nil)
	default:
		w.all(e)
	}
}

// parts: with parts reported one after another, an attempt may be complete.
func (w *world) parts(e txn.SendMarkers, some []txn.Topic) {
	key := attempt(e.TransactionalID, e.Attempt)
	for _, topic := range some {
		w.reported[key+" "+topic.Name] = true
	}
	all := true
	for _, topic := range []string{"t", txn.OffsetsTopic} {
		all = all && w.reported[key+" "+topic]
	}
	if all {
		w.reported[key] = true
	}
}

func (w *world) all(e txn.SendMarkers) {
	w.reported[attempt(e.TransactionalID, e.Attempt)] = true
	w.ask(txn.MarkersDone{TransactionalID: e.TransactionalID, Attempt: e.Attempt}, nil)
}

// late reports markers of an attempt of another time, which is nobody's.
func (w *world) late(t *rapid.T) {
	if len(w.markers) == 0 {
		return
	}
	e := rapid.SampledFrom(w.markers).Draw(t, "markers")
	e.Attempt.Decided = e.Attempt.Decided.Add(time.Duration(rapid.SampledFrom([]int{-1, 1}).Draw(t, "ms")) * time.Millisecond)
	if _, is := w.decided[attempt(e.TransactionalID, e.Attempt)]; !is {
		w.ask(txn.MarkersDone{TransactionalID: e.TransactionalID, Attempt: e.Attempt}, nil)
	}
}

// compare: where everything is durable, live and replayed are the same.
func (w *world) compare() {
	if w.h.Log.Pending() > 0 || w.h.Machine == nil {
		return
	}
	fresh := txn.New(w.cfg)
	if err := w.h.Replay(fresh.Apply); err != nil {
		return // the log failed; it is read again at the next use
	}
	var live, replayed strings.Builder
	w.h.Machine.(spy).Dump(&live)
	fresh.Dump(&replayed)
	for line := range strings.Lines(live.String()) { // ids that are not in memory are left out
		if !strings.Contains(replayed.String(), line) {
			w.t.Fatalf("live:\n%s\nreplayed:\n%s", live.String(), replayed.String())
		}
	}
}

// settle: all becomes durable, markers are written, timeouts pass, and nothing is open.
func (w *world) settle() {
	w.h.Log.Release(-1)
	for range 30 {
		w.h.Sync()
		if err := w.h.Shard.Open(); err != nil {
			continue
		}
		w.h.Advance(20 * time.Second)
		w.h.Sync()
		w.heed()
		for _, e := range w.markers {
			w.all(e)
		}
		w.markers = nil
	}
	w.h.Sync()
	if open := w.h.Open(); len(open) > 0 {
		w.t.Fatalf("never answered: %v", open)
	}
	name := w.ask(txn.List{States: []string{"Ongoing", "PrepareCommit", "PrepareAbort"}, LongerThan: -1}, nil)
	w.h.Sync()
	a, is := w.h.Answers[name]
	if !is || a.Err != nil {
		w.t.Fatalf("list: %+v, answered: %t", a, is)
	}
	if stuck := a.Resp.(*kmsg.ListTransactionsResponse).TransactionStates; len(stuck) > 0 {
		w.t.Fatalf("stuck: %+v", stuck)
	}
}

// checkLog looks at what was written, from the beginning.
func (w *world) checkLog() {
	last := map[string]*state.Txn{}
	given := map[txn.ProducerID]bool{}
	committed := map[string]map[txn.Producer]int{}
	err := w.h.Replay(func(at storage.Offset, r *state.Record) {
		b, n := last[r.ID], r.Txn
		last[r.ID] = n
		if n == nil {
			return
		}
		if b == nil || b.Producer.ID != n.Producer.ID {
			if given[n.Producer.ID] {
				w.t.Fatalf("offset %d: %s gets a producer id again: %v after %v", at, r.ID, n, b)
			}
			given[n.Producer.ID] = true
		}
		if b == nil {
			return
		}
		switch {
		case !n.Status.Follows(b.Status):
			w.t.Fatalf("offset %d: %s: %v after %v", at, r.ID, n, b)
		case b.Producer.ID == n.Producer.ID && n.Producer.Epoch < b.Producer.Epoch:
			w.t.Fatalf("offset %d: %s: the epoch goes back: %v after %v", at, r.ID, n, b)
		case n.Updated.Before(b.Updated):
			w.t.Fatalf("offset %d: %s: time goes back: %v after %v", at, r.ID, n, b)
		case b.Status.Preparing() && !n.Status.Preparing() && len(b.Topics) > 0 && !w.reported[attempt(r.ID, txn.Attempt{Producer: b.Producer, Decided: b.Updated})]:
			w.t.Fatalf("offset %d: %s is complete and its markers are not: %v after %v", at, r.ID, n, b)
		case n.Status == state.PrepareCommit && b.Status == state.Ongoing:
			if committed[r.ID] == nil {
				committed[r.ID] = map[txn.Producer]int{}
			}
			committed[r.ID][b.Producer]++
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for id, ps := range w.commits {
		for p, n := range ps {
			if committed[id][p] < n {
				w.t.Fatalf("%s: %d commits of %v were acknowledged, %d were written", id, n, p, committed[id][p])
			}
		}
	}
}
