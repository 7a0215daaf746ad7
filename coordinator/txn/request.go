package txn

import (
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

// What requests are made of.
type (
	ProducerID = state.ProducerID
	Epoch      = state.Epoch
	Producer   = state.Producer
	Topic      = state.Topic
	Topics     = state.Topics
)

// Request is one request to the shard that holds its transactional id: one of the
// types below. Kafka's messages are data here, in the shape of their newest
// version: api/kafka fills in what older versions lack and translates codes that
// older versions do not know (CodeFor). Topics and partitions that don't exist have
// been refused before.
//
// Instead of what a request's comment names, the answer may be
//   - NeedProducerID: nothing has changed; ask again with Fresh set;
//   - Stale: nothing has changed, and the connection is to be closed.
type Request interface {
	// Entity is the transactional id; one is false for requests about all ids of a
	// shard and for those with the empty id, which is none.
	Entity() (id string, one bool)
}

// Response is what a Request's comment names.
type Response any

// Client says who sent a request.
type Client struct {
	ID   string // client.id of the request header
	Host string // as Kafka shows it: "/127.0.0.1"
	// Conn numbers the connection; those accepted later have higher numbers. 0: none, and never stale.
	Conn uint64
}

// Init is an InitProducerId with a transactional id, and is answered by a
// *kmsg.InitProducerIDResponse. Who gets CONCURRENT_TRANSACTIONS asks again.
type Init struct {
	Client
	*kmsg.InitProducerIDRequest
	// Fresh is a producer id that was never given to anyone. It is set when the
	// answer was NeedProducerID, and is not used if it is no longer needed.
	Fresh *ProducerID
}

// AddPartitions is one transaction's part of an AddPartitionsToTxn, and is answered by
// a *kmsg.AddPartitionsToTxnResponseTransaction with all partitions asked for.
// Versions 0 to 3, of clients, have one such part; from 4 on brokers send several,
// and with VerifyOnly ask whether the partitions are in the transaction.
type AddPartitions struct {
	Client
	*kmsg.AddPartitionsToTxnRequestTransaction
	// Broker says that it is of version 4 or later: the transaction is of version 2,
	// and the connection says nothing about the producer.
	Broker bool
}

// AddOffsets is answered by a *kmsg.AddOffsetsToTxnResponse. Partition is the
// group's partition of __consumer_offsets.
type AddOffsets struct {
	Client
	*kmsg.AddOffsetsToTxnRequest
	Partition int32
}

// AddImplicit adds what a Produce of version 12 or later or a TxnOffsetCommit of
// version 5 or later is about to write to (transaction version 2, KIP-890). It is answered
// by a Result. Its connection says nothing about the producer.
type AddImplicit struct {
	Client
	TransactionalID string
	Producer        Producer
	Topics          []Topic
}

// VerifyOffsets asks whether a partition of __consumer_offsets is in the transaction,
// as a TxnOffsetCommit before version 5 must. It is answered by a Result.
type VerifyOffsets struct {
	TransactionalID string
	Producer        Producer
	Partition       int32
}

// End is an EndTxn, and is answered by a *kmsg.EndTxnResponse.
type End struct {
	Client
	*kmsg.EndTxnRequest
	// TransactionVersion is 2 from EndTxn version 5 on, else 1.
	TransactionVersion int16
	Fresh              *ProducerID
}

// MarkersDone reports markers of the attempt as written: all of them, or with
// Topics these, so that after a restart only the others are sent again. It is
// answered by a Result, also where the attempt is long over.
type MarkersDone struct {
	TransactionalID string
	Attempt         Attempt
	Topics          []Topic // nil: all
}

// PartitionsGone reports that partitions of the attempt are no more, with their
// topic: there is nothing to mark. It is answered by a Result.
type PartitionsGone struct {
	TransactionalID string
	Attempt         Attempt
	Topics          []Topic
}

// Abort aborts an ongoing transaction over its producer's head, and fences it. It
// is answered by a Result: TRANSACTIONAL_ID_NOT_FOUND, INVALID_TXN_STATE when nothing is
// open, CONCURRENT_TRANSACTIONS when it is decided already (its markers are then sent
// again), PRODUCER_FENCED when Only is another than the current producer.
type Abort struct {
	Client
	TransactionalID string
	// Only, if set, is the producer whose transaction is meant.
	Only  *Producer
	Fresh *ProducerID

	timedOut bool // by the sweep, which had no fresh id
}

// Describe is answered by a *kmsg.DescribeTransactionsResponseTransactionState.
type Describe struct{ TransactionalID string }

// List is answered by a *kmsg.ListTransactionsResponse of the shard's ids, by id. What
// is empty lets all pass.
type List struct {
	States      []string
	ProducerIDs []int64
	// LongerThan lets those pass that began longer ago; below 0: all.
	LongerThan time.Duration
	Pattern    *regexp.Regexp // of whole ids: see Pattern
}

// Explain asks for all that is known of an id. It is answered by an Explanation.
type Explain struct{ TransactionalID string }

// Quarantined asks for the ids in quarantine. It is answered by a []Quarantine.
type Quarantined struct{}

// Result is a code and no more.
type Result struct{ Code int16 }

// NeedProducerID is the answer to an Init, End or Abort that needs a producer id
// that was never used. Nothing has changed.
type NeedProducerID struct{}

// Stale is the answer to a request that came on an older connection than its
// producer's latest control request: it belongs to a transaction that is over.
// Nothing has changed; the connection is to be closed without an answer.
type Stale struct {
	Client Client // whom the newer connection is of
}

// Quarantine is an id with a record that cannot be read, in its stored bytes.
type Quarantine struct {
	TransactionalID string
	Key, Value      []byte
	Err             error
}

// Attempt names one decided transaction.
type Attempt struct {
	// Producer is the one whose markers are written: with transaction version 2,
	// or when it was fenced, in the epoch after that of the transaction's records.
	Producer Producer
	// Decided is when.
	Decided time.Time
}

// Is says whether both are the same.
func (a Attempt) Is(b Attempt) bool { return a.Producer == b.Producer && a.Decided.Equal(b.Decided) }

// Effect is something to be done outside: a SendMarkers or a WantsProducerID. It
// leaves when the records before it are durable.
type Effect interface{ Entity() (id string, one bool) }

// SendMarkers has markers written to all its partitions, of __consumer_offsets, too,
// and MarkersDone or PartitionsGone sent for them. It may come several times;
// a marker that is written twice does no harm. The coordinator epoch is the sender's to
// add: it belongs to the shard, not to the transaction.
type SendMarkers struct {
	TransactionalID string
	Attempt         Attempt
	Commit          bool
	Topics          Topics
	// TransactionVersion is what WriteTxnMarkers says from version 2 on (KIP-1228).
	TransactionVersion int16
}

// WantsProducerID asks for a fresh producer id for a request that the machine makes of
// itself: send Abort with Fresh set. If that fails it comes again.
type WantsProducerID struct{ Abort Abort }

func (r Init) Entity() (string, bool) {
	if r.TransactionalID == nil {
		return "", false
	}
	return id(*r.TransactionalID)
}
func (r AddPartitions) Entity() (string, bool)   { return id(r.TransactionalID) }
func (r AddOffsets) Entity() (string, bool)      { return id(r.TransactionalID) }
func (r AddImplicit) Entity() (string, bool)     { return id(r.TransactionalID) }
func (r VerifyOffsets) Entity() (string, bool)   { return id(r.TransactionalID) }
func (r End) Entity() (string, bool)             { return id(r.TransactionalID) }
func (r MarkersDone) Entity() (string, bool)     { return id(r.TransactionalID) }
func (r PartitionsGone) Entity() (string, bool)  { return id(r.TransactionalID) }
func (r Abort) Entity() (string, bool)           { return id(r.TransactionalID) }
func (r Describe) Entity() (string, bool)        { return id(r.TransactionalID) }
func (r Explain) Entity() (string, bool)         { return id(r.TransactionalID) }
func (r List) Entity() (string, bool)            { return "", false }
func (r Quarantined) Entity() (string, bool)     { return "", false }
func (e SendMarkers) Entity() (string, bool)     { return id(e.TransactionalID) }
func (e WantsProducerID) Entity() (string, bool) { return id(e.Abort.TransactionalID) }

// id is one unless it is empty, or longer than a record can hold.
func id(s string) (string, bool) { return s, s != "" && state.Writable(s) }

// Config is what the coordinator of transactions is told, mostly by Kafka's own keys.
type Config struct {
	MaxTimeout     time.Duration // transaction.max.timeout.ms
	AbortInterval  time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	Expiration     time.Duration // transactional.id.expiration.ms
	RemoveInterval time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
	// TransactionVersion is the finalized transaction.version: 2, or 1 without KIP-890.
	TransactionVersion int16
	// FenceStale refuses what comes on an older connection than the producer's latest
	// control request (transaction.stale.connection.fencing).
	FenceStale bool
	// Resident is about how many ids without an open transaction a shard keeps in memory; 0: a default.
	Resident int
	// Events is how many events a shard keeps for Explain; 0: a default.
	Events int
}

// OffsetsTopic is the topic whose partitions hold groups.
const OffsetsTopic = "__consumer_offsets"
