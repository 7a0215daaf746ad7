package metadataversion

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/txnlog"
)

// Bounds of what a plan remembers, so that it takes the same memory for any store.
const (
	maxExamples = 5
	maxTop      = 10
	maxEntities = 1 << 14 // per loss; beyond, records are counted but their groups are not
	maxNames    = 4 << 20 // bytes of their names, the same
	maxFatal    = 100
)

// Planner reads what is stored, in one pass, and finds out what a downgrade would lose. It is for one goroutine.
type Planner struct {
	plan    Plan
	rw      *Rewriter
	losses  map[lossKey]*Loss
	ignored map[lossKey]*Loss
	scratch []byte
}

type lossKey struct {
	log  Log
	typ  int16
	what Fields
}

// NewPlanner starts a plan for going from one version to another. from is only told of: what is lost depends on what is
// stored, whoever wrote it.
func NewPlanner(from, to Target) *Planner {
	return &Planner{
		plan:    Plan{From: from, To: to},
		rw:      NewRewriter(to),
		losses:  map[lossKey]*Loss{},
		ignored: map[lossKey]*Loss{},
		scratch: make([]byte, 0, 1<<16),
	}
}

// Visit takes a record into account; it keeps no reference to the bytes. A nil value is a tombstone.
func (p *Planner) Visit(log Log, shard int32, key, value []byte) {
	p.plan.Records++
	r := p.rw.Rewrite(p.scratch, log, key, value)
	switch r.Action {
	case Replace:
		p.plan.Rewritten++
	case Delete:
		if value != nil { // a tombstone says nothing; where it does harm it is purged with its shard
			p.plan.Deleted++
		}
	}
	if r.Lost|r.Ignored == 0 {
		return
	}
	rec := located{log: log, shard: shard, key: key, value: value, problem: r.Problem}
	rec.entity, rec.typ = entityOf(log, key)
	for what := range r.Lost.each {
		count(p.losses, rec, what)
	}
	for what := range r.Ignored.each {
		count(p.ignored, rec, what)
	}
	if r.Lost != 0 {
		p.fatal(rec, r)
	}
}

// located is a record that loses something.
type located struct {
	log        Log
	shard      int32
	typ        int16
	entity     []byte
	key, value []byte
	problem    error
}

func entityOf(log Log, key []byte) (entity []byte, typ int16) {
	if len(key) < 2 {
		return nil, -1
	}
	typ = int16(key[0])<<8 | int16(key[1])
	if log == TransactionsLog {
		if k, err := txnlog.DecodeKey(key); err == nil {
			return []byte(k.TransactionalID), typ
		}
		return nil, typ
	}
	entity, _, err := groupmeta.GroupOfKey(key)
	if err != nil {
		return nil, typ
	}
	return entity, typ
}

func count(all map[lossKey]*Loss, rec located, what Fields) {
	key := lossKey{rec.log, rec.typ, what}
	l := all[key]
	if l == nil {
		l = &Loss{Log: rec.log, Type: rec.typ, What: what, byEntity: map[string]int64{}}
		all[key] = l
	}
	l.Records++
	if rec.entity == nil { // no reader of the key can tell
	} else if _, ok := l.byEntity[string(rec.entity)]; ok {
		l.byEntity[string(rec.entity)]++
	} else if l.names += len(rec.entity); len(l.byEntity) < maxEntities && l.names <= maxNames {
		l.byEntity[string(rec.entity)] = 1
	} else {
		l.MoreEntities = true
	}
	if len(l.Examples) < maxExamples {
		l.Examples = append(l.Examples, rec.example())
	}
}

func (r located) example() Example {
	e := Example{Entity: string(r.entity), Shard: r.shard, Key: fmt.Sprintf("%x", r.key), Version: None}
	if len(r.value) >= 2 {
		e.Version = int16(r.value[0])<<8 | int16(r.value[1])
	}
	if r.problem != nil {
		e.Problem = r.problem.Error()
	}
	if r.log == TransactionsLog {
		if k, err := txnlog.DecodeKey(r.key); err == nil {
			e.Key = string(k.AppendJSON(nil))
		}
	} else if k, err := groupmeta.DecodeKey(r.key); err == nil {
		e.Key = string(k.AppendJSON(nil))
	}
	return e
}

// fatal notes the live members and producers whose client has to give up: for want of an API, of their transactional id,
// or of what a transaction under way needs.
func (p *Planner) fatal(rec located, r Result) {
	f := Fatal{Entity: string(rec.entity)}
	switch {
	case rec.log == TransactionsLog:
		if !f.producer(rec.value, r.Lost) {
			return
		}
	case r.Lost&WholeRecord != 0:
		k, err := groupmeta.DecodeKey(rec.key)
		if err != nil {
			return
		}
		switch k := k.(type) {
		case *groupmeta.ConsumerGroupMemberMetadataKey:
			f.Member = k.MemberID
		case *groupmeta.ShareGroupMemberMetadataKey:
			f.Member = k.MemberID
		case *groupmeta.StreamsGroupMemberMetadataKey:
			f.Member = k.MemberID
		default:
			return
		}
	default:
		return
	}
	p.plan.FatalClients++
	if len(p.plan.Fatal) < maxFatal {
		p.plan.Fatal = append(p.plan.Fatal, f)
	}
}

// producer says whether the loss is the end of the producer. One whose transactional id is gone cannot go on whatever it
// does. Else it can between transactions, and in one of transaction.version 0 or 1, which older releases know, too.
func (f *Fatal) producer(value []byte, lost Fields) bool {
	const ongoing, prepareAbort, dead = 1, 3, 6
	v := txnlog.NewTransactionLogValue()
	if _, err := v.Decode(value); err != nil || v.TransactionStatus == dead {
		return false
	}
	f.ProducerID = v.ProducerID
	f.InTransaction = v.TransactionStatus >= ongoing && v.TransactionStatus <= prepareAbort
	return lost&WholeRecord != 0 ||
		f.InTransaction && (lost&(NextProducerID|NextProducerEpoch) != 0 || lost&ClientTransactionVersion != 0 && v.ClientTransactionVersion > 1)
}

// Plan is the result. The planner can go on afterwards.
func (p *Planner) Plan() *Plan {
	plan := p.plan
	plan.Losses, plan.Ignored = settled(p.losses), settled(p.ignored)
	plan.Fatal = slices.Clone(plan.Fatal)
	for v := plan.From.Version; v > plan.To.Version && v.Known(); v-- {
		if !v.IsBackwardCompatible() {
			plan.Between = append(plan.Between, v)
		}
	}
	slices.Reverse(plan.Between)
	if !plan.To.Release.Tolerates() && plan.To.Version < plan.From.Version {
		plan.Via = plan.To.Release.Tolerant()
	}
	return &plan
}

// settled are the losses in a fixed order, with their entities counted.
func settled(all map[lossKey]*Loss) []Loss {
	var losses []Loss
	for _, l := range all {
		one := *l
		one.Examples = slices.Clone(l.Examples)
		one.Entities = len(l.byEntity)
		for e, n := range l.byEntity {
			one.Top = append(one.Top, EntityCount{e, n})
		}
		slices.SortFunc(one.Top, func(a, b EntityCount) int {
			return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Entity, b.Entity))
		})
		one.Top = slices.Clip(slices.Clone(one.Top[:min(len(one.Top), maxTop)]))
		one.byEntity = nil
		losses = append(losses, one)
	}
	slices.SortFunc(losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Log, b.Log), cmp.Compare(a.Type, b.Type), cmp.Compare(a.What, b.What))
	})
	return losses
}

// ErrLossy is wrapped by every reason of [Plan.Err].
var ErrLossy = errors.New("the downgrade loses records or fields")
