package marker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// outcome is what a broker's code means for a marker.
type outcome uint8

const (
	again    outcome = iota // soon, after a new look at who leads
	refused                 // the broker will hardly take it: rarely, and a log line says so
	accepted                // written, or nothing to write it to
)

// outcomes are those of the codes; of what is not among them: refused.
//
//	INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED   Kafka gives the transaction up until its coordinator
//	                                                         is loaded again, which leaves it decided and open. Here it is tried
//	                                                         again, rarely: an operator may have to act.
//	UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION      the partition cannot hold a marker, so nothing in it needs one
var outcomes = map[int16]outcome{
	0:                                      accepted,
	kerr.UnsupportedForMessageFormat.Code:  accepted,
	kerr.UnsupportedVersion.Code:           accepted,
	kerr.UnknownTopicOrPartition.Code:      again,
	kerr.NotLeaderForPartition.Code:        again,
	kerr.LeaderNotAvailable.Code:           again,
	kerr.NotEnoughReplicas.Code:            again,
	kerr.NotEnoughReplicasAfterAppend.Code: again,
	kerr.RequestTimedOut.Code:              again,
	kerr.KafkaStorageError.Code:            again,
	kerr.BrokerNotAvailable.Code:           again,
	kerr.NetworkException.Code:             again,
	kerr.CoordinatorNotAvailable.Code:      again, // of groups, in another kcoord
	kerr.CoordinatorLoadInProgress.Code:    again,
	kerr.NotCoordinator.Code:               again,
}

// take takes in a broker's answer. What it does not speak of was not written. REQUIRES mu.
func (s *Sender) take(b *batch, resp *kmsg.WriteTxnMarkersResponse, err error, now time.Time) {
	for i, one := range b.jobs {
		var codes map[place]int16
		if err == nil && i < len(resp.Markers) && resp.Markers[i].ProducerID == int64(one.j.Attempt.Producer.ID) {
			codes = codesOf(&resp.Markers[i])
		} else if err == nil {
			codes = codesOfProducer(resp, int64(one.j.Attempt.Producer.ID))
		}
		for _, at := range one.parts {
			p := &one.j.parts[at]
			code, told := codes[place{p.topic, p.index}]
			what := again
			if told {
				what = refused
				if known, is := outcomes[code]; is {
					what = known
				}
			}
			s.settle(b.node, one.j, p, what, code, err, now)
		}
	}
}

func (s *Sender) settle(node int32, j *job, p *part, what outcome, code int16, err error, now time.Time) {
	switch what {
	case accepted:
		j.written(p)
		s.counts.Written++
		return
	case refused:
		p.later(now)
		p.due = now.Add(rarely)
		s.counts.Retried++
	case again:
		p.later(now)
		s.counts.Retried++
	}
	if p.said || what == again && now.Sub(j.began) < slow {
		return
	}
	p.said = true
	if err == nil {
		err = kerr.ErrorForCode(code)
	}
	s.o.Log.Warn().Err(err).Str("transactionalId", j.TransactionalID).Str("topic", p.topic).Int32("partition", p.index).Int32("broker", node).
		Msg("a transaction marker could not be written so far; trying again. Until it is, consumers of committed records wait there")
}

// slow is when a marker is talked about.
const slow = 10 * time.Second

type place struct {
	topic     string
	partition int32
}

func codesOf(m *kmsg.WriteTxnMarkersResponseMarker) map[place]int16 {
	codes := map[place]int16{}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			codes[place{t.Topic, p.Partition}] = p.ErrorCode
		}
	}
	return codes
}

// codesOfProducer is for answers in another order than the request's.
func codesOfProducer(resp *kmsg.WriteTxnMarkersResponse, producer int64) map[place]int16 {
	for i := range resp.Markers {
		if resp.Markers[i].ProducerID == producer {
			return codesOf(&resp.Markers[i])
		}
	}
	return nil
}
