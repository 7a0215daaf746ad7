package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
)

// Transactions takes offsets into the transactions of producers.
type Transactions struct{ api adminpb.TransactionsClient }

// NewTransactions asks the kcoord at the other end of a connection to its admin API.
func NewTransactions(conn grpc.ClientConnInterface) *Transactions {
	return &Transactions{adminpb.NewTransactionsClient(conn)}
}

// ErrNotTransactional says that a producer has no transactional id.
var ErrNotTransactional = errors.New("client: the producer has no transactional id")

// SendOffsets commits offsets with the producer's open transaction: they count when that is
// committed. They are the next to be consumed, as in all of Kafka.
//
// What Kafka has a code for is found by errors.Is: kerr.IllegalGeneration, for one, where
// the group has rebalanced since the member was taken. The transaction is then to be aborted.
func (t *Transactions) SendOffsets(ctx context.Context, producer *kgo.Client, by ConsumerGroupMetadata, offsets map[string]map[int32]kgo.EpochOffset) error {
	m, is := by.(*member) // and not what wraps one, and says something else
	if !is || m == nil {
		return ErrNoMember
	}
	id, _ := producer.OptValue(kgo.TransactionalID).(string)
	if id == "" {
		return ErrNotTransactional
	}
	producerID, e, err := producer.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("client: the producer id of %q: %w", id, err)
	}
	epoch := int32(e)
	g := &adminpb.ConsumerGroupMetadata{Group: m.group, Generation: &m.generation, MemberId: m.id}
	if m.static {
		g.InstanceId = &m.instance
	}
	req := &adminpb.SendOffsetsToTransactionRequest{TransactionalId: id, ProducerId: &producerID, ProducerEpoch: &epoch, Group: g}
	for topic, partitions := range offsets {
		for p, at := range partitions {
			req.Offsets = append(req.Offsets, &adminpb.OffsetToSet{Topic: topic, Partition: p, Offset: at.Offset, LeaderEpoch: &at.Epoch})
		}
	}
	if len(req.GetOffsets()) == 0 {
		return nil
	}
	_, err = t.api.SendOffsetsToTransaction(ctx, req)
	return coded(err)
}

// coded is an error that also is the one of Kafka that it tells of.
func coded(err error) error {
	for _, d := range status.Convert(err).Details() {
		if r, is := d.(*adminpb.OffsetsRefused); is {
			return fmt.Errorf("client: %w (%w)", err, kerr.ErrorForCode(int16(r.GetErrorCode())))
		}
	}
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}
