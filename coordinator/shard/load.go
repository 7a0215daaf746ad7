package shard

import (
	"fmt"
	"time"

	"github.com/kcoord/kcoord/storage"
)

// ready opens the shard unless it is open. What Loaded decided for the entities
// that were loaded may be given back to be delivered.
func (s *Shard[Req, Rec, Resp, Eff]) ready(now time.Time) ([]letter[Resp, Eff], error) {
	if s.closed {
		return nil, ErrLost
	}
	if s.m != nil {
		return nil, nil
	}
	began := s.o.Now()
	s.epoch++
	epoch := s.epoch
	log, err := s.o.Backend.Open(s.o.ID, func(end storage.Offset, err error) { s.onDurable(epoch, end, err) })
	if err != nil {
		return nil, s.unreadable(fmt.Errorf("opening: %w", err))
	}
	m := s.o.New()
	var load []string
	err = log.Entities(func(entity []byte, headers []storage.Located, pending bool) error {
		recs := make([]Rec, len(headers))
		for i, h := range headers {
			recs[i] = s.o.Codec.Decode(h.Record)
		}
		if name := string(entity); m.Known(name, recs, pending) {
			load = append(load, name)
		}
		return nil
	})
	if err != nil {
		return nil, s.unreadable(fmt.Errorf("listing what is stored: %w", err))
	}
	s.m, s.log, s.end = m, log, log.End()
	s.durable = s.end
	var out []letter[Resp, Eff]
	for _, entity := range load {
		if s.m == nil {
			break // an append failed: the shard opens again at its next use
		}
		// An entity that cannot be read is asked for again when it is touched.
		more, _ := s.need(now, entity)
		out = append(out, more...)
	}
	if s.m == nil {
		return out, ErrLost
	}
	s.tell(s.m.NextTimer())
	if s.o.Opened != nil {
		s.o.Opened(s.o.Now().Sub(began))
	}
	return out, nil
}

// need has an entity in memory: it applies the latest record of each key and what
// is pending, then lets the machine rebuild what is soft.
func (s *Shard[Req, Rec, Resp, Eff]) need(now time.Time, entity string) ([]letter[Resp, Eff], error) {
	if s.m.Has(entity) {
		return nil, nil
	}
	type located struct {
		at  storage.Offset
		rec Rec
	}
	// All are read before the first is applied: a half loaded entity would be
	// taken for a whole one.
	var recs []located
	err := s.log.Load([]byte(entity), func(at storage.Offset, r storage.Record) error {
		recs = append(recs, located{at, s.o.Codec.Decode(r)})
		return nil
	})
	if err != nil {
		return nil, s.unreadable(fmt.Errorf("loading %q: %w", entity, err))
	}
	for i := range recs {
		s.m.Apply(recs[i].at, &recs[i].rec)
	}
	s.m.Loaded(now, entity, &s.out)
	one, rest := s.finish(0, nil)
	if s.m == nil {
		return rest, ErrLost
	}
	return append(rest, one), nil
}

func (s *Shard[Req, Rec, Resp, Eff]) unreadable(err error) error {
	err = fmt.Errorf("shard %d: %w", s.o.ID, err)
	// Every request tries again: the same is not told again for each.
	if now, said := s.now(), err.Error(); said != s.said || !now.Before(s.sayAgain) {
		s.o.Failed(err)
		s.said, s.sayAgain = said, now.Add(sayAgainAfter)
	}
	if s.m == nil {
		s.tell(s.now().Add(reopenAfter), true)
	}
	return fmt.Errorf("%w: %w", ErrLoading, err)
}

// sayAgainAfter is how long what cannot be read is not told of again.
const sayAgainAfter = 10 * time.Second
