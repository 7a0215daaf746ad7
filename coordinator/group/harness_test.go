package group

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// epoch is when the scripts begin.
var epoch = time.UnixMilli(1_700_000_000_000).UTC()

// counting is a source of randomness for member ids that sort in the order of their making.
type counting struct{ n uint64 }

func (c *counting) Read(p []byte) (int, error) {
	c.n++
	clear(p)
	binary.BigEndian.PutUint64(p[len(p)-8:], c.n)
	return len(p), nil
}

// harness is the runner in small: it loads what a machine needs, applies what it
// decides, and keeps the records in a slice, of which all are durable at once.
type harness struct {
	cfg  Config
	m    *Machine
	now  time.Time
	log  []state.Record
	rand counting
	out  output

	token   machine.Token
	waiting map[machine.Token]string // request names
	ids     map[string]string        // member id → name
	seen    func(name string, resp Response)
	text    strings.Builder
	loads   int
	bad     func(format string, args ...any)
}

func newHarness(bad func(string, ...any)) *harness {
	return &harness{
		cfg: Config{
			MinSessionTimeout: 500 * time.Millisecond, MaxSessionTimeout: 30 * time.Minute, MaxSize: 20,
			MetadataMaxChars: 4096, Retention: 7 * 24 * time.Hour, RetentionCheckInterval: 10 * time.Minute,
		},
		now: epoch, waiting: map[machine.Token]string{}, ids: map[string]string{}, bad: bad,
	}
}

// open starts a machine on the log, the first or one after a crash.
func (h *harness) open() {
	h.m = New(h.cfg, &h.rand)
	clear(h.waiting)
	var load []string
	stored := h.stored()
	for _, g := range slices.Sorted(maps.Keys(stored)) {
		var headers []state.Record
		pending := false
		for _, l := range stored[g] {
			switch {
			case l.rec.Txn.Kind == storage.Pending:
				pending = true
			case l.rec.Kind != state.KindOffset:
				headers = append(headers, l.rec)
			}
		}
		if h.m.Known(g, headers, pending) {
			load = append(load, g)
		}
	}
	for _, g := range load {
		h.need(g)
	}
}

// located is a record as a log gives it back, and its place.
type located struct {
	at  storage.Offset
	rec state.Record
}

func recordKey(r state.Record) string {
	switch r.Kind {
	case state.KindOffset:
		return fmt.Sprintf("o/%v/%s/%d", r.LegacyKey, r.Topic, r.Partition)
	case state.KindGroup:
		return "g"
	}
	return "k/" + string(r.Key)
}

// stored is what the log gives back of each group: by storage's rules the latest record of
// each key, without tombstones, and then what is pending.
func (h *harness) stored() map[string][]located {
	type place struct {
		producer   int64
		group, key string
	}
	latest, pending := map[place]located{}, map[place]located{}
	for i, r := range h.log {
		l := located{storage.Offset(i), r}
		at := place{group: r.Group, key: recordKey(r)}
		switch {
		case r.Kind == state.KindMarker:
			for p, l := range pending {
				if p.producer != r.Txn.Producer {
					continue
				}
				delete(pending, p)
				p.producer = 0
				if was, has := latest[p]; r.Txn.Kind == storage.Commit && (!has || was.at < l.at) {
					l.rec.Txn = storage.Txn{}
					latest[p] = l
				}
			}
		case r.Tombstone:
			latest[at] = l
			maps.DeleteFunc(pending, func(p place, _ located) bool { return p.group == at.group && p.key == at.key })
		case r.Txn.Kind == storage.Pending:
			at.producer = r.Txn.Producer
			pending[at] = l
		default:
			latest[at] = l
		}
	}
	out := map[string][]located{}
	for _, from := range []map[place]located{latest, pending} {
		recs := slices.SortedFunc(maps.Values(from), func(a, b located) int { return cmp.Compare(a.at, b.at) })
		for _, l := range recs {
			if !l.rec.Tombstone {
				out[l.rec.Group] = append(out[l.rec.Group], l)
			}
		}
	}
	return out
}

// need has a group in memory.
func (h *harness) need(id string) {
	if h.m.Has(id) {
		return
	}
	h.loads++
	for _, l := range h.stored()[id] {
		h.m.Apply(l.at, &l.rec)
	}
	h.step(func() { h.m.Loaded(h.now, id, &h.out) })
	if !h.m.Has(id) {
		h.bad("group %q is loaded and not there", id)
	}
}

// do sends a request.
func (h *harness) do(name string, req Request) {
	if id, one := h.m.Touches(req); one {
		h.need(id)
	}
	h.token++
	tok := h.token
	h.waiting[tok] = name
	var lent [][]byte
	if c, is := req.(Commit); is {
		lent = lend(c)
	}
	h.step(func() { h.m.Handle(h.now, machine.Input[Request]{Token: tok, Req: req}, &h.out) })
	if _, parked := h.waiting[tok]; parked {
		h.printf("%s: parked\n", name)
		return
	}
	for _, b := range lent {
		copy(b, bytes.Repeat([]byte("?"), len(b)))
	}
}

// lend moves the metadata of a commit into memory that others will use once it is answered.
func lend(c Commit) (lent [][]byte) {
	for i := range c.Topics {
		for j := range c.Topics[i].Partitions {
			if p := &c.Topics[i].Partitions[j]; p.Metadata != nil {
				b := []byte(*p.Metadata)
				s := unsafe.String(unsafe.SliceData(b), len(b))
				p.Metadata, lent = &s, append(lent, b)
			}
		}
	}
	return lent
}

// step runs a step of the machine, which must leave the hard state alone, then
// applies its records and prints all that came of it.
func (h *harness) step(run func()) {
	before := h.dump(h.m)
	run()
	if after := h.dump(h.m); after != before {
		h.bad("a step changed the hard state:\n%s\nwas:\n%s", after, before)
	}
	for _, r := range h.out.Records {
		h.printf("  %s\n", h.record(r))
		h.apply(r)
	}
	for _, r := range h.out.Replies { // names first: others' answers tell of them
		if j, is := r.Resp.(*kmsg.JoinGroupResponse); is && (j.ErrorCode == none || j.ErrorCode == memberIDRequired) {
			h.name(j.MemberID, h.waiting[r.Token])
		}
	}
	for _, r := range h.out.Replies {
		name, waits := h.waiting[r.Token]
		if !waits {
			h.bad("request %d is answered twice or never was: %v", r.Token, r.Resp)
		}
		delete(h.waiting, r.Token)
		if h.seen != nil {
			h.seen(name, r.Resp)
		}
		h.printf("%s: %s\n", name, h.answer(r.Resp))
	}
	h.out.Reset()
	h.m.Evict(storage.Offset(len(h.log)))
}

func (h *harness) apply(r state.Record) {
	h.log = append(h.log, r)
	h.m.Apply(storage.Offset(len(h.log)-1), &r)
}

func (h *harness) dump(m *Machine) string {
	var b strings.Builder
	m.hard.Dump(&b)
	return b.String()
}

// advance lets time pass and fires what is due.
func (h *harness) advance(d time.Duration) {
	same := 0
	for end := h.now.Add(d); ; {
		at, armed := h.m.NextTimer()
		if !armed || at.After(end) {
			h.now = end
			return
		}
		if same++; at.After(h.now) {
			h.now, same = at, 0
		}
		if same > 10_000 {
			h.bad("the timers of one moment do not end")
			return
		}
		h.fire()
	}
}

// fire fires one timer that is due.
func (h *harness) fire() {
	if id, one := h.m.Due(); one {
		h.need(id)
	}
	from := h.text.Len()
	h.step(func() { h.m.Fire(h.now, &h.out) })
	if h.text.Len() > from {
		said := h.text.String()
		h.text.Reset()
		h.printf("%s%v:\n%s", said[:from], h.now.Sub(epoch), said[from:])
	}
}

func (h *harness) printf(format string, args ...any) { fmt.Fprintf(&h.text, format, args...) }

// said takes what was printed.
func (h *harness) said() string {
	defer h.text.Reset()
	return h.text.String()
}

// name is the name of a member id, and gives it one if it has none.
func (h *harness) name(id, wish string) string {
	if id == "" {
		return `""`
	}
	if n, ok := h.ids[id]; ok {
		return n
	}
	if wish == "" {
		return id
	}
	for _, n := range h.ids {
		if n == wish {
			return h.name(id, wish+"'")
		}
	}
	h.ids[id] = wish
	return wish
}

// id is the member id of a name, or the name itself.
func (h *harness) id(name string) string {
	for id, n := range h.ids {
		if n == name {
			return id
		}
	}
	return name
}

func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(c).Message
}

// jump sets the clock, which the runner notices.
func (h *harness) jump(by time.Duration) {
	h.now = h.now.Add(by)
	h.m.Shift(by)
	h.advance(0)
}
