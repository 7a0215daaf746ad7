package state

import "slices"

// Status is the state of a transaction, numbered as TransactionLogValue does.
type Status uint8

const (
	// Empty: the id was initialised, and its producer has not begun.
	Empty Status = iota
	// Ongoing: partitions are part of the transaction, which its producer will
	// end, or its timeout, or another producer.
	Ongoing
	// PrepareCommit and PrepareAbort: it is decided, and markers are under way.
	PrepareCommit
	PrepareAbort
	// CompleteCommit and CompleteAbort: every partition has its marker.
	CompleteCommit
	CompleteAbort
	// Dead: the id has expired. It is never written: a tombstone is.
	Dead
	// PrepareEpochFence: Kafka's name for the moment in which a producer is fenced
	// before its transaction is aborted. It is never written: here that is one step.
	PrepareEpochFence
)

// statusNames are the names that Kafka's clients know.
var statusNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// statusBefore holds, for each state, the states that it may follow.
var statusBefore = [...][]Status{
	Empty:   {Empty, CompleteCommit, CompleteAbort},
	Ongoing: {Ongoing, Empty, CompleteCommit, CompleteAbort},
	// To itself: some of the markers are written, the others remain.
	PrepareCommit: {Ongoing, PrepareCommit},
	// From where nothing is open: transaction version 2 lets a producer abort that is
	// not sure of having begun (KIP-890).
	PrepareAbort:      {Ongoing, PrepareAbort, Empty, CompleteCommit, CompleteAbort},
	CompleteCommit:    {PrepareCommit},
	CompleteAbort:     {PrepareAbort},
	Dead:              {Empty, CompleteCommit, CompleteAbort},
	PrepareEpochFence: {},
}

func (s Status) String() string { return statusNames[s] }

// Follows says whether s may be what a transaction is in after before.
func (s Status) Follows(before Status) bool { return slices.Contains(statusBefore[s], before) }

// Preparing says that markers are under way: until they are written nothing else begins.
func (s Status) Preparing() bool { return s == PrepareCommit || s == PrepareAbort }

// Open says that the transaction holds back what consumers may read.
func (s Status) Open() bool { return s == Ongoing || s.Preparing() }

// Written says whether records hold this state.
func (s Status) Written() bool { return s < Dead }

// StatusOf is the state of a name, in Kafka's own spelling.
func StatusOf(name string) (Status, bool) {
	i := slices.Index(statusNames[:], name)
	return Status(max(i, 0)), i >= 0
}
