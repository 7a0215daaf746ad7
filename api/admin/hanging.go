package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// openIn is what a producer has open in a partition, by where it begins.
type openIn struct {
	place
	producer int64
	start    int64
}

// opened asks the partitions' leaders what is open in them; no topics: all. Partitions that
// could not be asked about are named.
func (b *Broker) opened(ctx context.Context, of []*adminpb.TopicPartitions) (map[openIn]kadm.DescribedProducer, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	set := kadm.TopicsSet{}
	for _, t := range of {
		set.Add(t.GetTopic(), t.GetPartitions()...)
	}
	told, err := b.client.DescribeProducers(ctx, set)
	if err = heard(err); err != nil && len(told) == 0 {
		return nil, nil, err
	}
	open, failed := map[openIn]kadm.DescribedProducer{}, []string(nil)
	if err != nil { // of some brokers
		failed = append(failed, err.Error())
	}
	for _, p := range told.SortedPartitions() {
		if p.Err != nil {
			failed = append(failed, fmt.Sprintf("%s-%d: %v", p.Topic, p.Partition, p.Err))
		}
		for _, d := range p.ActiveProducers {
			if d.CurrentTxnStartOffset >= 0 {
				open[openIn{place{p.Topic, p.Partition}, d.ProducerID, d.CurrentTxnStartOffset}] = d
			}
		}
	}
	return open, failed, nil
}

// have refuses what the broker has not.
func (b *Broker) have(ctx context.Context, of []*adminpb.TopicPartitions) error {
	if len(of) == 0 {
		return nil
	}
	var names []string
	for _, t := range of {
		names = append(names, t.GetTopic())
	}
	there, err := b.topics(ctx, names)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	for _, t := range of {
		known := there[t.GetTopic()]
		if len(known.Partitions) == 0 {
			return status.Errorf(codes.NotFound, "the broker has no topic %q", t.GetTopic())
		}
		for _, p := range t.GetPartitions() {
			if _, has := known.Partitions[p]; !has {
				return status.Errorf(codes.NotFound, "the broker has no partition %s-%d", t.GetTopic(), p)
			}
		}
	}
	return nil
}

// abort writes the marker that nobody else will.
func (b *Broker) abort(ctx context.Context, h *adminpb.HangingTransaction) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	set := kadm.TopicsSet{}
	set.Add(h.GetTopic(), h.GetPartition())
	told, err := b.client.WriteTxnMarkers(ctx, kadm.TxnMarkers{
		ProducerID: h.GetProducerId(), ProducerEpoch: int16(h.GetProducerEpoch()), CoordinatorEpoch: h.GetCoordinatorEpoch(), Topics: set,
	})
	if err = heard(err); err != nil {
		return err
	}
	done, ok := told[h.GetProducerId()].Topics[h.GetTopic()].Partitions[h.GetPartition()]
	if !ok {
		return errors.New("the broker says nothing of the marker")
	}
	return done.Err
}

// FindHanging looks at the brokers, then here, then at the brokers again. A transaction is
// written down here before anything of it is written there, and is closed there before it
// is closed here: so what was open there before and after, and not here between, hangs. One
// look would also find transactions that ended meanwhile.
func (t *transactions) FindHanging(ctx context.Context, req *adminpb.FindHangingRequest) (*adminpb.FindHangingResponse, error) {
	found, failed, err := t.hanging(ctx, req.GetPartitions())
	return &adminpb.FindHangingResponse{Hanging: found, NotAsked: failed}, err
}

func (t *transactions) hanging(ctx context.Context, of []*adminpb.TopicPartitions) ([]*adminpb.HangingTransaction, []string, error) {
	if err := t.broker.have(ctx, of); err != nil {
		return nil, nil, err
	}
	open, failed, err := t.broker.opened(ctx, of)
	if err != nil {
		return nil, nil, status.Error(codes.Unavailable, err.Error())
	}
	if len(open) == 0 {
		return nil, failed, nil
	}
	ids, err := t.suspects(ctx, open)
	if err != nil || len(open) == 0 {
		return nil, failed, err
	}
	var again []*adminpb.TopicPartitions
	for at := range open {
		again = append(again, &adminpb.TopicPartitions{Topic: at.topic, Partitions: []int32{at.partition}})
	}
	still, more, err := t.broker.opened(ctx, again)
	if err != nil {
		return nil, nil, status.Error(codes.Unavailable, err.Error())
	}
	for _, f := range more {
		if !slices.Contains(failed, f) {
			failed = append(failed, f)
		}
	}
	var found []*adminpb.HangingTransaction
	for at := range open {
		if d, is := still[at]; is {
			found = append(found, hangs(d, ids[at.producer]))
		}
	}
	slices.SortFunc(found, func(a, b *adminpb.HangingTransaction) int {
		if a.Topic != b.Topic {
			return strings.Compare(a.Topic, b.Topic)
		}
		if a.Partition != b.Partition {
			return int(a.Partition) - int(b.Partition)
		}
		return int(min(max(a.StartOffset-b.StartOffset, -1), 1))
	})
	return found, failed, nil
}

// suspects leaves in open what no transaction here has, and says which ids have the
// producer ids of those.
func (t *transactions) suspects(ctx context.Context, open map[openIn]kadm.DescribedProducer) (map[int64]string, error) {
	var producers []int64
	for at := range open {
		producers = append(producers, at.producer)
	}
	slices.Sort(producers)
	// Of all ids: one that is rolling over to a new producer id is listed under one of them.
	listed, err := t.list(ctx, txn.List{LongerThan: -1})
	if err != nil {
		return nil, err
	}
	ids := map[int64]string{}
	for _, l := range listed {
		busy := slices.Contains([]string{"Ongoing", "PrepareCommit", "PrepareAbort", "Unknown"}, l.GetState())
		if _, asked := slices.BinarySearch(producers, l.GetProducerId()); !asked && !busy {
			continue
		}
		if l.GetState() == "Unknown" { // whose it is cannot be told: nothing may be said to be nobody's
			return nil, status.Errorf(codes.FailedPrecondition, "transactional id %q has a record that cannot be read (kcoord txns quarantined): what hangs cannot be told from what is its", l.GetTransactionalId())
		}
		x, err := askTxn[txn.Explanation](ctx, t.ask, txn.Explain{TransactionalID: l.GetTransactionalId()})
		if err != nil {
			return nil, err
		}
		ids[int64(x.Producer.ID)] = x.TransactionalID
		if x.Status != "Ongoing" && x.Status != "PrepareCommit" && x.Status != "PrepareAbort" {
			continue
		}
		for at := range open {
			if at.producer == int64(x.Producer.ID) && has(x.Topics, at.place) {
				delete(open, at)
			}
		}
	}
	return ids, nil
}

func has(topics txn.Topics, at place) bool {
	for _, t := range topics {
		if t.Name == at.topic {
			return slices.Contains(t.Partitions, at.partition)
		}
	}
	return false
}

func hangs(d kadm.DescribedProducer, id string) *adminpb.HangingTransaction {
	return &adminpb.HangingTransaction{
		Topic: d.Topic, Partition: d.Partition, ProducerId: d.ProducerID, ProducerEpoch: int32(d.ProducerEpoch), StartOffset: d.CurrentTxnStartOffset,
		LastMs: d.LastTimestamp, CoordinatorEpoch: d.CoordinatorEpoch, TransactionalId: id,
		Abort: fmt.Sprintf("kcoord txns abort --topic %s --partition %d --producer-id %d --producer-epoch %d --yes", d.Topic, d.Partition, d.ProducerID, d.ProducerEpoch),
	}
}

// hangingIn is what one producer has hanging in one partition.
func (t *transactions) hangingIn(ctx context.Context, topic string, partition int32, producer int64, epoch int32) (*adminpb.HangingTransaction, error) {
	found, failed, err := t.hanging(ctx, []*adminpb.TopicPartitions{{Topic: topic, Partitions: []int32{partition}}})
	if err != nil {
		return nil, err
	}
	for _, h := range found {
		if h.GetProducerId() == producer && h.GetProducerEpoch() == epoch {
			return h, nil
		}
	}
	if len(failed) > 0 {
		return nil, status.Error(codes.Unavailable, failed[0])
	}
	return nil, status.Errorf(codes.NotFound, "%s-%d: nothing of producer %d/%d hangs there", topic, partition, producer, epoch)
}
