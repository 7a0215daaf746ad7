//go:build kafka

package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const slots = 5

// op is one request. What it holds is drawn from its seed, the same for both targets.
type op struct {
	kind    string
	version int16
	slot    int
	seed    uint64
}

func (o op) String() string {
	return fmt.Sprintf("%s/%d slot %d seed %d", o.kind, o.version, o.slot, o.seed)
}

// parks says whether the answer may be long in coming, or does not come at all.
func (o op) parks() bool {
	return o.kind == "join" || o.kind == "joinAnew" || o.kind == "sync" || o.kind == "wait" || o.kind == "hangup"
}

// silent says whether nothing is sent, so that nothing is to be compared.
func (o op) silent() bool {
	return o.kind == "crash" || o.kind == "burst" || strings.HasSuffix(o.kind, "Topic")
}

// tellsOfGroups says whether the answer depends on there being a group without members.
func (o op) tellsOfGroups() bool {
	return slices.Contains([]string{"describe", "list", "fetch", "delete", "deleteOffsets", "commit", "txnCommit"}, o.kind)
}

// ofLog says whether it takes the sequence's own topic.
func (o op) ofLog() bool {
	return slices.Contains([]string{"addPartitions", "produce", "offsets", "read", "producers", "markers", "markersAhead", "unserved"}, o.kind)
}

// kinds are weights and the greatest versions.
var kinds = []opKind{
	{"join", 26, 0, 9}, {"sync", 18, 0, 5}, {"heartbeat", 9, 0, 4}, {"leave", 6, 0, 5}, {"commit", 14, 2, 10},
	{"fetch", 8, 1, 10}, {"describe", 6, 0, 6}, {"list", 4, 0, 5}, {"deleteOffsets", 4, 0, 0}, {"delete", 3, 0, 3},
	{"rejoinAll", 8, 0, 9}, {"find", 1, 0, 6}, {"joinAnew", 4, 0, 9}, {"unserved", 1, 0, 1}, {"hangup", 2, 0, 0},
}

// txnKinds are there, too, in half of the sequences.
var txnKinds = []opKind{
	{"init", 12, 0, 5}, {"addPartitions", 12, 0, 5}, {"addOffsets", 10, 0, 4}, {"txnCommit", 24, 0, 6},
	{"endTxn", 18, 0, 5}, {"describeTxns", 6, 0, 0}, {"listTxns", 3, 0, 2}, {"markers", 4, 1, 2},
	{"produce", 36, 3, 13}, {"offsets", 5, 2, 10}, {"read", 5, 4, 17}, {"producers", 2, 0, 0},
}

// timedKinds are there, too, in a third of the sequences, whose timeouts are short.
var timedKinds = []opKind{{"wait", 16, 0, 0}, {"rejoinAll", 8, 0, 9}}

// crashing are the sequences in which kcoord is killed and Kafka is not: of what outlives that.
var crashing = append([]opKind{
	{"commit", 20, 2, 10}, {"fetch", 10, 1, 10}, {"describe", 3, 0, 6}, {"deleteOffsets", 6, 0, 0}, {"delete", 4, 0, 3}, {"crash", 8, 0, 0},
}, txnKinds...)

// producesUpTo is the version of Produce up to which kcoord serves it: 11 with transaction.version 1, where Kafka serves 13 all
// the same, and no client asks for it.
var producesUpTo int16

type opKind struct {
	name     string
	weight   int
	min, max int16
}

func generate(seed uint64, n int) []op {
	r := rand.New(rand.NewPCG(seed, 1))
	kinds := kinds
	switch {
	case restart != "":
		kinds = crashing
	case *transactions:
		kinds = slices.Concat(txnKinds, []opKind{{"commit", 4, 2, 10}, {"fetch", 8, 1, 10}})
	case r.IntN(2) == 0:
		kinds = slices.Concat(kinds, txnKinds)
	}
	if timed(seed) {
		kinds = slices.Concat(kinds, timedKinds)
	}
	if remade(seed) {
		kinds = slices.Concat(kinds, topicKinds)
	}
	if bursting(seed) {
		kinds = slices.Concat(kinds, brokersKinds)
	}
	clients := 1 + r.IntN(slots)
	var ops []op
	if remade(seed) {
		ops = append(ops, op{"makeTopic", 0, 0, 2}, op{"makeTopic", 0, 0, 6})
	}
	for len(ops) < n {
		k := drawKind(r, kinds)
		v := k.version(r)
		if k.name != "rejoinAll" {
			ops = append(ops, op{k.name, v, r.IntN(clients), r.Uint64() | 1})
			continue
		}
		for s := range clients { // a rebalance that succeeds
			ops = append(ops, op{"join", v, s, r.Uint64() >> 1 << 1}, op{"join", v, s, r.Uint64() >> 1 << 1})
		}
		for s := range clients {
			ops = append(ops, op{"sync", min(v, 5), s, r.Uint64() >> 1 << 1})
		}
	}
	for _, v := range []int16{1, 5, 8, 10} {
		ops = append(ops, op{"fetch", v, 0, seed << 1})
	}
	if r.IntN(4) == 0 { // what ends the transactions is of version 2, too: other markers Kafka's partitions take no more
		for slot := range txnIDs {
			ops = append(ops, op{"markersAhead", 2, slot, seed << 1}, op{"endTxn", 5, slot, seed << 1})
		}
	}
	ops = append(ops, op{"endTxn", 3, 0, seed << 1}, op{"endTxn", 5, 1, seed << 1}, op{"describeTxns", 0, 0, seed << 1}, op{"fetch", 8, 0, seed<<1 + 4})
	if slices.ContainsFunc(ops, func(o op) bool { return o.kind == "produce" }) {
		ops = append(ops, op{"producers", 0, 0, seed << 1})
		for i := range uint64(4) { // of both isolation levels
			ops = append(ops, op{"offsets", 7, 0, seed<<3 + 2*i})
		}
		ops = append(ops, op{"read", 11, 0, seed << 1}, op{"read", 13, 0, seed << 1})
	}
	return append(ops, op{"describe", 5, 0, seed << 1}, op{"list", 5, 0, seed << 1}, op{"leave", 4, 0, 2}, op{"delete", 2, 0, seed << 1})
}

func drawKind(r *rand.Rand, kinds []opKind) opKind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	at := r.IntN(total)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			return k
		}
	}
	panic("weights do not add up")
}

func (k opKind) version(r *rand.Rand) int16 {
	v := k.min + int16(r.IntN(int(k.max-k.min)+1))
	if k.name == "produce" {
		v = min(v, producesUpTo)
	}
	return v
}

// timed says whether a sequence waits now and then until sessions, rebalances and transactions have timed out.
func timed(seed uint64) bool { return restart == "" && rand.New(rand.NewPCG(seed, 5)).IntN(3) == 0 }

// draw is what a request is made of. Ops with an even seed are well-behaved.
type draw struct {
	*rand.Rand
	o      op
	t      *target
	s      *sequence
	honest bool
}

// odd says yes in one of n cases, where the op may misbehave.
func (d *draw) odd(n int) bool { x := d.IntN(n) == 0; return x && !d.honest }

func pick[T any](d *draw, xs ...T) T { return xs[d.IntN(len(xs))] }

func (d *draw) weird() string {
	const long = 32767 // both hang up on more
	return pick(d, "", "", "a\xffb", "\xc3", "\xed\xa0\x80", "\x00", "日本𝄞", "..", "a b/c", strings.Repeat("x", 250), strings.Repeat("y", 4097), strings.Repeat("z", long),
		strings.Repeat("é", 3000), strings.Repeat("\xff", 3000))
}

func (d *draw) group() string {
	switch {
	case d.s.weird && d.odd(12):
		if w := d.weird(); w != "" {
			return d.s.prefix + w[:min(len(w), 32700-len(d.s.prefix))]
		}
		if slices.Contains([]string{"join", "sync", "find", "heartbeat", "leave", "commit"}, d.o.kind) {
			return "" // others would be told of what other sequences have in it
		}
	case d.odd(8):
		return d.s.prefix + "other"
	}
	return d.s.prefix + "g"
}

func (d *draw) member() string {
	own, other := d.t.slots[d.o.slot].member, d.t.slots[d.IntN(slots)].member
	switch {
	case d.odd(10):
		return ""
	case d.odd(12):
		return other
	case d.odd(15):
		return "unknown"
	case d.s.weird && d.odd(12):
		return d.weird()
	}
	return own
}

func (d *draw) instance() *string {
	var own *string
	if d.o.slot >= 3 {
		own = kmsg.StringPtr(fmt.Sprint("i", d.o.slot))
	}
	if d.s.weird && d.odd(12) {
		w := d.weird()
		return &w
	}
	if d.odd(10) {
		return pick(d, nil, kmsg.StringPtr("i3"), kmsg.StringPtr("i4"), kmsg.StringPtr("ix"), kmsg.StringPtr(""))
	}
	return own
}

func (d *draw) generation() int32 {
	g := d.t.slots[d.o.slot].generation
	if d.odd(10) {
		return pick(d, g+1, g-1, -1, 0, -2, 1<<31-1)
	}
	return g
}

func (d *draw) topic() string {
	if d.s.weird && d.odd(8) {
		return d.weird()
	}
	if d.s.remade && d.IntN(2) == 0 {
		return d.ownTopic()
	}
	return pick(d, "dt-a", "dt-a", "dt-a", "dt-b", "dt-b", "dt-missing")
}

func (d *draw) topicID() [16]byte {
	if d.s.remade && d.IntN(2) == 0 {
		return d.ownID()
	}
	switch d.IntN(8) {
	case 0:
		return [16]byte{}
	case 1:
		return [16]byte{1, 2, 3}
	case 2, 3, 4:
		return d.t.ids["dt-b"]
	}
	return d.t.ids["dt-a"]
}

func (d *draw) partition() int32 {
	if d.odd(12) {
		return pick[int32](d, -1, 4, 1000, 1<<31-1, -1<<31)
	}
	return int32(d.IntN(4))
}

// protocolType is the sequence's; subscriptions are those of "consumer".
func (d *draw) protocolType() string {
	if d.odd(20) {
		return pick(d, "", "consumer", "connect", "other")
	}
	return d.s.protocolType
}

func (d *draw) protocols() []kmsg.JoinGroupRequestProtocol {
	var ps []kmsg.JoinGroupRequestProtocol
	if d.odd(25) {
		return ps
	}
	names := []string{"range", "roundrobin", "x", "w"} // each has its own bucket of a Java HashMap: else who wins a tie is random
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+d.IntN(4)]
	if !d.odd(4) && !slices.Contains(names, "range") { // one named twice breaks the group in Kafka
		names = append(names, "range")
	}
	if d.s.weird && d.odd(6) {
		names = append(names, d.weird())
	}
	for _, n := range names {
		ps = append(ps, kmsg.JoinGroupRequestProtocol{Name: n, Metadata: d.subscription()})
	}
	return ps
}

func (d *draw) subscription() []byte {
	switch d.IntN(10) {
	case 0:
		return nil
	case 1:
		return []byte{1, 2, 3}
	}
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = int16(d.IntN(4))
	m.Topics = [][]string{{"dt-a"}, {"dt-b"}, {"dt-a", "dt-b"}, {}}[d.IntN(4)]
	if d.s.remade && d.IntN(2) == 0 {
		m.Topics = append(m.Topics, d.ownTopic())
	}
	return m.AppendTo(nil)
}
