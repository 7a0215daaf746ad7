package marker

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// due is what there is to tell of a job now. REQUIRES mu.
func (s *Sender) due(j *job, now time.Time) []txn.Request {
	if j.reporting || s.closed || s.jobs[j.TransactionalID] != j || now.Before(j.reportAt) {
		return nil
	}
	var reports []txn.Request
	if topics := j.untold(gone); len(topics) > 0 {
		reports = append(reports, txn.PartitionsGone{TransactionalID: j.TransactionalID, Attempt: j.Attempt, Topics: topics})
	}
	switch {
	case j.open == 0:
		reports = append(reports, txn.MarkersDone{TransactionalID: j.TransactionalID, Attempt: j.Attempt})
	case !now.Before(j.partly):
		if topics := j.untold(written); len(topics) > 0 {
			reports = append(reports, txn.MarkersDone{TransactionalID: j.TransactionalID, Attempt: j.Attempt, Topics: topics})
		}
		j.partly = now.Add(partlyAfter)
	}
	j.reporting = len(reports) > 0
	return reports
}

// untold takes the parts in a state of which nobody was told.
func (j *job) untold(state partState) []txn.Topic {
	var topics []txn.Topic
	for i := range j.parts {
		p := &j.parts[i]
		if p.state != state || p.told {
			continue
		}
		p.told = true
		if n := len(topics); n == 0 || topics[n-1].Name != p.topic {
			topics = append(topics, txn.Topic{Name: p.topic})
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, p.index)
	}
	return topics
}

// report tells the transaction's shard, one thing after the other. What is not heard is
// told again: a shard that has lost its state in between does not know it either.
func (s *Sender) report(j *job, reports []txn.Request) {
	if len(reports) == 0 {
		return
	}
	s.o.Report(reports[0], func(err error) {
		if err == nil && len(reports) > 1 {
			s.report(j, reports[1:])
			return
		}
		s.reported(j, reports[0], err)
	})
}

func (s *Sender) reported(j *job, last txn.Request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.reporting = false
	done, is := last.(txn.MarkersDone)
	switch {
	case s.jobs[j.TransactionalID] != j:
	case err != nil:
		for i := range j.parts {
			j.parts[i].told = false
		}
		j.reportAt = time.Now().Add(lastWait)
		s.nudge()
	case is && done.Topics == nil:
		delete(s.jobs, j.TransactionalID)
	default:
		s.nudge() // more may have been written meanwhile
	}
}
