package state

import (
	"fmt"
	"math"
)

// ProducerID is the id that a transactional id's producer writes with.
type ProducerID int64

// NoProducerID is no producer id.
const NoProducerID ProducerID = -1

// Epoch tells the producers apart that a producer id has had: the highest is
// the one that is not fenced.
type Epoch int16

const (
	// NoEpoch is no epoch.
	NoEpoch Epoch = -1
	// lastEpoch is the last that a producer is given. The one after it is for
	// fencing that producer, and so always left.
	lastEpoch Epoch = math.MaxInt16 - 1
)

// Exhausted says that the epoch after this one is not for a producer.
func (e Epoch) Exhausted() bool { return e >= lastEpoch }

// Fences says whether the epoch is the highest, which nobody is given: it is there to
// fence the producer in the one before.
func (e Epoch) Fences() bool { return e > lastEpoch }

// Next is the epoch after e: the one that fences it.
func (e Epoch) Next() Epoch {
	if e.Fences() {
		panic(fmt.Sprintf("no epoch fences %d", e))
	}
	return e + 1
}

// Producer is one producer of a transactional id.
type Producer struct {
	ID    ProducerID
	Epoch Epoch
}

// NoProducer is none.
var NoProducer = Producer{NoProducerID, NoEpoch}

// Last is the last producer that a producer id has.
func Last(id ProducerID) Producer { return Producer{id, lastEpoch} }

func (p Producer) String() string { return fmt.Sprintf("%d/%d", p.ID, p.Epoch) }
