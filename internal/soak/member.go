package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is one of a good group. The fleet's sender writes to its connection, receive reads.
type member struct {
	fleet      *fleet
	group, id  string
	generation int32
	from, n    int // its partitions
	w          *wire
	out        []byte

	mu     sync.Mutex
	flight []sent // requests without an answer, in order
	next   int64  // offset
	acked  int64  // the last one that was acknowledged
}

// sent is a request under way.
type sent struct {
	kind   kind
	at     time.Time
	offset int64
	tally  *tally // of the phase that it was sent in
}

// join joins until the group has as many members as it is to have, and syncs.
func (m *member) join(ctx context.Context, addr string, size int) (err error) {
	if m.w, err = dial(addr); err != nil {
		return err
	}
	for ctx.Err() == nil {
		resp, err := do(m.w, joinRequest(m.group, m.id, session), kmsg.NewPtrJoinGroupResponse())
		if err != nil {
			return fmt.Errorf("soak: joining %s: %w", m.group, err)
		}
		switch err := failed(resp.ErrorCode); {
		case errors.Is(err, kerr.MemberIDRequired):
			m.id = resp.MemberID
			continue
		case err != nil:
			return fmt.Errorf("soak: joining %s: %w", m.group, err)
		}
		m.generation = resp.Generation
		members := resp.Members
		if resp.LeaderID == m.id && len(members) < size {
			continue // someone is late: once more, so that all join again
		}
		synced, err := do(m.w, syncRequest(m.group, m.id, m.generation, members), kmsg.NewPtrSyncGroupResponse())
		if err != nil {
			return fmt.Errorf("soak: syncing %s: %w", m.group, err)
		}
		switch err := failed(synced.ErrorCode); {
		case errors.Is(err, kerr.RebalanceInProgress):
			continue
		case err != nil:
			return fmt.Errorf("soak: syncing %s: %w", m.group, err)
		}
		return m.w.SetDeadline(time.Time{})
	}
	return ctx.Err()
}

func (m *member) beat() {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = beatVersion, m.group, m.id, m.generation
	m.send(req, sent{kind: heartbeat})
}

func (m *member) commit() {
	m.next++
	m.send(commitRequest(m.group, m.id, m.generation, topicName, m.from, m.n, m.next, nil), sent{kind: commit, offset: m.next})
}

func (m *member) fetch() {
	m.send(fetchRequest(m.group, topicName, m.from, m.n), sent{kind: fetch})
}

func (m *member) send(req kmsg.Request, s sent) {
	m.out = formatter.AppendRequest(m.out[:0], req, 1)
	s.tally = m.fleet.tally.Load()
	m.mu.Lock()
	s.at = time.Now()
	m.flight = append(m.flight, s)
	m.mu.Unlock()
	if _, err := m.w.Write(m.out); err != nil {
		m.fleet.fail(fmt.Errorf("%s of %s: %w", s.kind, m.group, err))
	}
}

// receive takes the answers until the connection ends.
func (m *member) receive() {
	for {
		b, err := answer(m.w.in)
		if err != nil {
			m.fleet.fail(fmt.Errorf("the connection of a member of %s: %w", m.group, err))
			return
		}
		now := time.Now()
		m.mu.Lock()
		if len(m.flight) == 0 {
			m.mu.Unlock()
			m.fleet.fail(fmt.Errorf("an answer that %s did not ask for", m.group))
			return
		}
		s := m.flight[0]
		m.flight = append(m.flight[:0], m.flight[1:]...)
		acked := m.acked
		m.mu.Unlock()
		if s.tally != nil {
			s.tally.add(s.kind, now.Sub(s.at))
		}
		if err := m.judge(s, b, acked); err != nil {
			m.fleet.fail(fmt.Errorf("%s of %s: %w", s.kind, m.group, err))
		}
	}
}

// judge reads an answer. acked is what had been acknowledged before it, so that a fetch
// sees at least that.
func (m *member) judge(s sent, b []byte, acked int64) error {
	switch s.kind {
	case heartbeat:
		resp := kmsg.NewPtrHeartbeatResponse()
		err := parse(b, beatVersion, resp)
		return errors.Join(err, failed(resp.ErrorCode))
	case commit:
		resp := kmsg.NewPtrOffsetCommitResponse()
		err := parse(b, commitVersion, resp)
		parts := 0
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				parts++
				err = errors.Join(err, failed(p.ErrorCode))
			}
		}
		if err == nil && parts != m.n {
			err = fmt.Errorf("%d partitions instead of %d", parts, m.n)
		}
		if err == nil {
			m.mu.Lock()
			m.acked = s.offset
			m.mu.Unlock()
		}
		return err
	}
	resp := kmsg.NewPtrOffsetFetchResponse()
	err := parse(b, fetchVersion, resp)
	parts := 0
	for _, g := range resp.Groups {
		err = errors.Join(err, failed(g.ErrorCode))
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				parts++
				if err = errors.Join(err, failed(p.ErrorCode)); err == nil && p.Offset < acked {
					err = fmt.Errorf("offset %d, though %d was acknowledged", p.Offset, acked)
				}
			}
		}
	}
	if err == nil && parts != m.n {
		err = fmt.Errorf("%d partitions instead of %d", parts, m.n)
	}
	return err
}
