package upstream

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// ask is one caller's questions.
type ask struct {
	names []string
	ids   [][16]byte
	done  chan error
}

// Ask asks the broker for topics. When it returns without an error, Asked and
// AskedID show what there was when the broker answered, which was after Ask was
// called. An error wraps ErrUnavailable. Who asks is a client's connection, on which
// heartbeats wait behind the question: a broker that hangs holds it no longer than one does.
func (t *Topics) Ask(ctx context.Context, names []string, ids [][16]byte) error {
	ctx, cancel := context.WithTimeout(ctx, t.b.o.Timeout)
	defer cancel()
	a := &ask{names: names, ids: ids, done: make(chan error, 1)}
	select {
	case t.b.asks <- a:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-t.b.done:
		return ErrUnavailable
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-t.b.done:
		return ErrUnavailable
	}
}

// answer puts the questions of several callers in one request.
func (b *Broker) answer(ctx context.Context, l *link, asks []*ask) {
	names, ids := map[string]bool{}, map[[16]byte]bool{}
	for _, a := range asks {
		for _, n := range a.names {
			names[n] = true
		}
		for _, id := range a.ids {
			if id != ([16]byte{}) { // no topic has it
				ids[id] = true
			}
		}
	}
	var lost untold
	var err error
	if len(names)+len(ids) > 0 {
		lost, err = b.put(ctx, l, slices.Sorted(maps.Keys(names)), slices.Collect(maps.Keys(ids)))
	}
	for _, a := range asks {
		a.done <- cmp.Or(err, lost.of(a))
	}
}

// of is why some of what was asked for could not be told.
func (u *untold) of(a *ask) error {
	for _, n := range a.names {
		if err := u.names[n]; err != nil {
			return err
		}
	}
	for _, id := range a.ids {
		if err := u.ids[id]; err != nil {
			return err
		}
	}
	return nil
}

// put asks for topics and shows the answer. Versions of Metadata before 12 cannot
// ask by id alone; what such a broker's topics have for ids, a full look shows.
func (b *Broker) put(ctx context.Context, l *link, names []string, ids [][16]byte) (lost untold, err error) {
	if !b.topics.isTrusted() { // then nothing is shown, and nothing found would look like nothing there
		if err := b.look(ctx, l); err != nil {
			return lost, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	if err := l.open(ctx); err != nil {
		return lost, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if b.elsewhere() {
		if err := b.look(ctx, l); err != nil {
			return lost, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	if l.metadataVersion < 12 {
		ids = nil
	}
	if len(names) > 0 {
		err = b.ask(ctx, l, names, nil, &lost)
	}
	if len(ids) > 0 && err == nil { // Kafka looks at no name where there is an id
		err = b.ask(ctx, l, nil, ids, &lost)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return lost, err
}

// ask asks for topics by name or by id. What it is not told of is lost.
func (b *Broker) ask(ctx context.Context, l *link, names []string, ids [][16]byte, lost *untold) error {
	resp, err := l.metadata(ctx, names, ids)
	if err != nil {
		return err
	}
	if b.topics.otherCluster(resp) {
		return ErrOtherCluster
	}
	lost.leftOut(resp, names, ids)
	b.bury(ctx, b.topics.some(resp, lost), "topics were deleted and created again")
	return nil
}
