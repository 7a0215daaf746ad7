//go:build kafka

package difftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Patience: how long an answer may take until it counts as parked, and until one
// that the other target gave counts as missing.
const (
	parked  = 60 * time.Millisecond
	settled = 8 * time.Millisecond
	missing = 1500 * time.Millisecond
	// slower is how much longer than a question an answer may take on a machine that is busy.
	slower = 20
)

// A sequence that is timed waits for longer than a rebalance or a transaction may take; two waits are longer than a
// session, and one is shorter. What it does between takes less time than the differences: where it took more, on a busy
// machine, timers may have run out at one target and not yet at the other.
const (
	shortSession, shortRebalance, shortTransaction = 5000, 2000, 2000 // ms

	outlasts = 3 * time.Second
	// slack is what may be done before and after a wait, so that there is time left for what runs out to happen.
	slack = 1500 * time.Millisecond

	// leastSession is the shortest that is taken (group.min.session.timeout.ms): it runs out in the midst of a sequence.
	leastSession = 500
)

// pace is how long a sequence takes between its waits.
type pace struct {
	rested time.Time     // when the last wait was over, or the sequence began
	before time.Duration // what came before that wait took
	lost   bool          // it took too long once: which timers have run out is not the same from then on
}

// tooLong says whether what was done around a wait took so long, now or before, that timers may have run out at one
// target alone.
func (s *sequence) tooLong() bool {
	s.pace.lost = s.pace.lost || s.timed && s.pace.before+time.Since(s.pace.rested) > slack
	return s.pace.lost
}

// wait waits until what is to run out has done so.
func (s *sequence) wait() {
	s.tooLong()
	time.Sleep(outlasts)
	now := time.Now()
	s.pace.before, s.pace.rested = now.Sub(s.pace.rested)-outlasts, now
}

// notePace looks for a session that runs out at any time.
func (s *sequence) notePace(a answer) {
	req, is := a.req.(*kmsg.JoinGroupRequest)
	resp, ok := a.resp.(*kmsg.JoinGroupResponse)
	if is && ok && req.SessionTimeoutMillis == leastSession && slices.Contains([]int16{0, kerr.MemberIDRequired.Code}, resp.ErrorCode) {
		s.pace.lost = true
	}
}

// apart is what the targets tell of who is in the sequence's groups where that is not the same, and how long they took to tell.
// Where it is the same, what is parked has come to the groups of both, if that shows: a request on another connection could overtake it.
func (s *sequence) apart() (string, time.Duration, error) {
	var told [2]string
	var took time.Duration
	for j, t := range s.targets {
		asked := time.Now()
		resp, err := t.ask(s.prefix)
		if err != nil {
			return "", 0, err
		}
		took = max(took, time.Since(asked))
		for i, g := range resp.Groups {
			if g.State == "Dead" || g.State == "Empty" { // of which there may be one in Kafka alone: see unwritten
				resp.Groups[i] = kmsg.DescribeGroupsResponseGroup{Group: g.Group}
			}
		}
		told[j] = t.render(answer{resp: resp}, s.prefix)
	}
	if told[0] == told[1] {
		return "", took, nil
	}
	return fmt.Sprintf("kafka  %s\n        kcoord %s", told[0], told[1]), took, nil
}

// arrived says whether what is parked has come to the groups of both, and what they tell where it seems that it never does.
func (s *sequence) arrived(i int, sent time.Time, slow bool) (bool, string) {
	apart, took, err := s.apart()
	since := time.Since(sent)
	switch {
	case err != nil:
		return false, err.Error()
	case apart == "":
		return since > min(slower*took, missing), ""
	case since <= missing:
		return false, ""
	case slow:
		return false, inconclusive
	}
	return false, fmt.Sprintf("op %d: groups %s", i, apart)
}
