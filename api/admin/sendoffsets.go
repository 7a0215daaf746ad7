package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

// SendOffsetsToTransaction is a TxnOffsetCommit that adds its group to the transaction, as
// from version 5 on (KIP-890), but for one thing: it always says which member sends it, so
// that no setting lets a stale instance pass.
func (t *transactions) SendOffsetsToTransaction(ctx context.Context, req *adminpb.SendOffsetsToTransactionRequest) (*adminpb.SendOffsetsToTransactionResponse, error) {
	if lacks := lacking(req); lacks != "" {
		return nil, status.Errorf(codes.InvalidArgument, "%s is missing: offsets are committed with a producer and a member's group, generation and member id (KIP-447)", lacks)
	}
	commit, err := t.commitOf(ctx, req)
	if err != nil {
		return nil, err
	}
	done, err := await(ctx, func(reply func(group.TxnCommitted, error)) {
		t.ask.CommitInTxn(coordinator.TxnCommit{
			Client: caller(ctx), TxnCommit: group.TxnCommit{TxnOffsetCommitRequest: commit, Fences: true}, Implicit: true,
		}, reply)
	})
	if err != nil {
		return nil, err
	}
	for _, topic := range done.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				return nil, refusedOffsets(req, p.ErrorCode)
			}
		}
	}
	return &adminpb.SendOffsetsToTransactionResponse{}, nil
}

// lacking is what is missing of who commits, "" for nothing. Kafka's clients say -1 and "" for
// what they do not know: that is as good as nothing.
func lacking(req *adminpb.SendOffsetsToTransactionRequest) string {
	g := req.GetGroup()
	switch {
	case req.GetTransactionalId() == "":
		return "transactional_id"
	case req.ProducerId == nil || req.GetProducerId() < 0:
		return "producer_id"
	case req.ProducerEpoch == nil || !isEpoch(req.GetProducerEpoch()):
		return "producer_epoch"
	case g.GetGroup() == "":
		return "group.group"
	case g == nil || g.Generation == nil || g.GetGeneration() < 0:
		return "group.generation"
	case g.GetMemberId() == "":
		return "group.member_id"
	case g.InstanceId != nil && g.GetInstanceId() == "":
		return "group.instance_id, which is there and empty,"
	case len(req.GetOffsets()) == 0:
		return "offsets"
	}
	return ""
}

// commitOf is Kafka's request, for partitions that the broker has.
func (t *transactions) commitOf(ctx context.Context, req *adminpb.SendOffsetsToTransactionRequest) (*kmsg.TxnOffsetCommitRequest, error) {
	g := req.GetGroup()
	out := kmsg.NewPtrTxnOffsetCommitRequest()
	out.TransactionalID, out.ProducerID, out.ProducerEpoch = req.GetTransactionalId(), req.GetProducerId(), int16(req.GetProducerEpoch())
	out.Group, out.Generation, out.MemberID, out.InstanceID = g.GetGroup(), g.GetGeneration(), g.GetMemberId(), g.InstanceId
	var names []string
	for _, o := range req.GetOffsets() {
		names = append(names, o.GetTopic())
	}
	there, err := t.broker.topics(ctx, names)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	at, twice := map[string]int{}, map[place]bool{}
	for _, o := range req.GetOffsets() {
		where := place{o.GetTopic(), o.GetPartition()}
		if o.GetOffset() < 0 || twice[where] {
			return nil, status.Errorf(codes.InvalidArgument, "%s-%d: one offset from 0 on, please", where.topic, where.partition)
		}
		if err := missing(there, where); err != nil {
			return nil, err
		}
		twice[where] = true
		i, has := at[where.topic]
		if !has {
			i = len(out.Topics)
			at[where.topic] = i
			out.Topics = append(out.Topics, kmsg.TxnOffsetCommitRequestTopic{Topic: where.topic, TopicID: there[where.topic].ID})
		}
		metadata := o.GetMetadata()
		out.Topics[i].Partitions = append(out.Topics[i].Partitions, kmsg.TxnOffsetCommitRequestTopicPartition{
			Partition: where.partition, Offset: o.GetOffset(), LeaderEpoch: orMinusOne(o.LeaderEpoch), Metadata: &metadata,
		})
	}
	return out, nil
}

// refusedOffsets says why, with Kafka's code for programs.
func refusedOffsets(req *adminpb.SendOffsetsToTransactionRequest, code int16) error {
	id, g := req.GetTransactionalId(), req.GetGroup()
	e := kerr.TypedErrorForCode(code)
	detail := &adminpb.OffsetsRefused{Group: g.GetGroup(), TransactionalId: id, ErrorCode: int32(code), Error: e.Message}
	is, words := codes.FailedPrecondition, ""
	switch e {
	case kerr.IllegalGeneration:
		words = detail.Error + ": the group has rebalanced since, and the offsets are others' to commit now"
	case kerr.UnknownMemberID, kerr.FencedInstanceID, kerr.GroupIDNotFound:
		words = detail.Error + ": " + g.GetMemberId() + " is no member of it any more"
	case kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping:
		words = detail.Error + ": the transactional id has another producer"
	case kerr.OffsetMetadataTooLarge, kerr.InvalidGroupID:
		is, words = codes.InvalidArgument, detail.Error
	case kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator:
		is, words = codes.Unavailable, detail.Error+": try again"
	default:
		words = detail.Error
	}
	s := status.Newf(is, "offsets of group %q in the transaction of %q: %s", g.GetGroup(), id, words)
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}
