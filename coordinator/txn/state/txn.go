package state

import (
	"fmt"
	"math"
	"time"

	"github.com/kcoord/kcoord/txnlog"
)

// Txn is what is written of a transactional id (TransactionLogValue). It never changes.
type Txn struct {
	Status   Status
	Producer Producer
	// Previous is whose id came before the producer's, if that producer may ask for this
	// one again, as it does when it did not hear the answer; else the producer's own,
	// as Kafka writes it, or none.
	Previous ProducerID
	// Next is the id that the producer goes on with after a transaction that it
	// ended in its id's last epoch; NextEpoch is of two-phase commit (KIP-939), read
	// and not written.
	Next      ProducerID
	NextEpoch Epoch
	Timeout   time.Duration
	Topics    Topics    // that the transaction is about; in a Prepare state: that have no marker yet
	Started   time.Time // of the transaction; zero: none since the id was initialised
	Updated   time.Time
	// Version is the transaction version that the transaction is of: from 2 on its end
	// bumps the epoch. Kafka writes 0 for the version before.
	Version int16
	// Tags are fields of later versions, kept and written back.
	Tags txnlog.UnknownTags
}

// New is a transactional id that was just initialised for the first time.
func New(id ProducerID, timeout time.Duration, now time.Time) Txn {
	return Txn{
		Producer: Producer{id, 0}, Previous: id, Next: NoProducerID, NextEpoch: NoEpoch,
		Timeout: timeout, Updated: now,
	}
}

// to is the transaction in another state. Time does not go back.
func (t *Txn) to(s Status, now time.Time) Txn {
	if !s.Follows(t.Status) {
		panic(fmt.Sprintf("producer %v: from %v to %v", t.Producer, t.Status, s))
	}
	n := *t
	n.Status = s
	if now.After(t.Updated) {
		n.Updated = now
	}
	return n
}

// Initialised is the id after its producer p, perhaps the same, has it. before is what
// Previous then is.
func (t *Txn) Initialised(p Producer, before ProducerID, timeout time.Duration, now time.Time) Txn {
	n := t.to(Empty, now)
	n.Producer, n.Previous, n.Timeout = p, before, timeout
	n.Next, n.NextEpoch = NoProducerID, NoEpoch
	n.Topics, n.Started = nil, time.Time{}
	return n
}

// With is the transaction, begun if it is not, with more partitions in it.
func (t *Txn) With(topics Topics, version int16, now time.Time) Txn {
	n := t.to(Ongoing, now)
	if t.Status != Ongoing {
		n.Topics, n.Started = nil, n.Updated
	}
	// Who begins has heard of its id: nobody asks for it again with the one before.
	n.Previous, n.Version = t.Producer.ID, version
	n.Topics = n.Topics.With(topics)
	return n
}

// Prepared is the transaction decided. With a bump its producer's epoch is over; next
// is then the id it goes on with, if it has no other epoch.
//
// The time of a decision is later than that of anything before, so that it names
// the decision: no two transactions of an id are decided at one time.
func (t *Txn) Prepared(commit bool, version int16, bump bool, next ProducerID, now time.Time) Txn {
	s := PrepareAbort
	if commit {
		s = PrepareCommit
	}
	n := t.to(s, now)
	if !n.Updated.After(t.Updated) {
		n.Updated = t.Updated.Add(time.Millisecond)
	}
	if t.Status != Ongoing {
		n.Topics, n.Started = nil, n.Updated
	}
	if bump {
		n.Producer.Epoch = t.Producer.Epoch.Next()
	}
	n.Previous, n.Next, n.NextEpoch, n.Version = t.Producer.ID, next, NoEpoch, version
	return n
}

// Left is the decided transaction after some partitions have their markers. Its
// time remains: it is still the same decision.
func (t *Txn) Left(topics Topics) Txn {
	n := t.to(t.Status, t.Updated)
	n.Topics = topics
	return n
}

// Completed is the transaction with all its markers written.
func (t *Txn) Completed(now time.Time) Txn {
	s := CompleteAbort
	if t.Status == PrepareCommit {
		s = CompleteCommit
	}
	n := t.to(s, now)
	n.Topics, n.Previous = nil, t.Producer.ID
	if t.Next != NoProducerID {
		n.Producer = Producer{t.Next, max(t.NextEpoch, 0)}
	}
	n.Next, n.NextEpoch = NoProducerID, NoEpoch
	return n
}

// Successor is who the producer will be once the transaction is complete.
func (t *Txn) Successor() Producer {
	if t.Next != NoProducerID {
		return Producer{t.Next, max(t.NextEpoch, 0)}
	}
	return t.Producer
}

// Unbounded says that time does not end the transaction: its producer takes part in two-phase
// commit (KIP-939), which Kafka writes as the longest timeout that there is.
func (t *Txn) Unbounded() bool { return t.Timeout == math.MaxInt32*time.Millisecond }

// Deadline is the first moment at which an ongoing transaction has taken too long, unless the
// clock has jumped since it began.
func (t *Txn) Deadline() time.Time { return t.Started.Add(t.Timeout + time.Millisecond) }

// Before is the producer that may ask for the current one's epoch again, as far
// as records tell: the one in the last epoch of the id before, or the one whose
// transaction's end bumped the epoch.
func (t *Txn) Before() Producer {
	switch {
	case t.Previous >= 0 && t.Previous != t.Producer.ID && t.Producer.Epoch == 0:
		return Last(t.Previous)
	case (t.Status == CompleteCommit || t.Status == CompleteAbort) && t.Version >= 2 && t.Producer.Epoch > 0:
		return Producer{t.Producer.ID, t.Producer.Epoch - 1}
	}
	return NoProducer
}
