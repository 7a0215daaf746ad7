package admin

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// PlanAbort plans for the transaction of an id, or for what hangs in a partition.
func (t *transactions) PlanAbort(ctx context.Context, req *adminpb.PlanAbortRequest) (*adminpb.AbortPlan, error) {
	switch id, topic := req.GetTransactionalId(), req.GetTopic(); {
	case (id == "") == (topic == ""):
		return nil, status.Error(codes.InvalidArgument, "an abort is of a transactional id, or of a topic's partition")
	case (req.ProducerId == nil) != (req.ProducerEpoch == nil):
		return nil, status.Error(codes.InvalidArgument, "a producer is an id and an epoch")
	case req.ProducerEpoch != nil && !isEpoch(req.GetProducerEpoch()):
		return nil, status.Errorf(codes.InvalidArgument, "no producer has the epoch %d", req.GetProducerEpoch())
	case topic == "":
		return t.planOfID(ctx, req)
	case req.ProducerId == nil:
		return nil, status.Error(codes.InvalidArgument, "what hangs in a partition is of a producer id and epoch")
	}
	return t.planOfPartition(ctx, req)
}

func isEpoch(n int32) bool { return n >= 0 && n == int32(int16(n)) }

func (t *transactions) planOfID(ctx context.Context, req *adminpb.PlanAbortRequest) (*adminpb.AbortPlan, error) {
	id := req.GetTransactionalId()
	d, _, err := t.describe(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case d.GetQuarantined():
		return nil, txnCoded(kerr.CoordinatorLoadInProgress.Code, id)
	case !d.GetExists():
		return nil, noTransaction(id)
	case req.ProducerId != nil && (req.GetProducerId() != d.GetProducerId() || req.GetProducerEpoch() != d.GetProducerEpoch()):
		return nil, otherProducer(id, req.GetProducerId(), req.GetProducerEpoch())
	}
	p := &adminpb.AbortPlan{
		TransactionalId: id, ProducerId: d.GetProducerId(), ProducerEpoch: d.GetProducerEpoch(), State: d.GetState(), StartedMs: d.StartedMs,
		Partitions: d.GetPartitions(), Groups: d.GetGroups(),
	}
	switch d.GetState() {
	case "Ongoing":
		p.Note = "its producer is fenced, its records and offsets are dropped"
	case "PrepareAbort":
		p.Note = "it is decided: what is not written of its markers is sent again"
	case "PrepareCommit":
		return nil, status.Errorf(codes.FailedPrecondition, "transactional id %q is decided to commit: it cannot be aborted any more", id)
	default:
		return nil, nothingOpen(id, d.GetState())
	}
	return p, nil
}

func nothingOpen(id, state string) error {
	return status.Errorf(codes.FailedPrecondition, "transactional id %q has no open transaction (%s)", id, state)
}

func otherProducer(id string, producer int64, epoch int32) error {
	return status.Errorf(codes.FailedPrecondition, "transactional id %q is not of producer %d/%d any more", id, producer, epoch)
}

// ApplyAbort ends what was planned to. Its producer is compared in the step that aborts.
func (t *transactions) ApplyAbort(ctx context.Context, plan *adminpb.AbortPlan) (*adminpb.ApplyAbortResponse, error) {
	if !isEpoch(plan.GetProducerEpoch()) || plan.GetProducerId() < 0 {
		return nil, status.Error(codes.InvalidArgument, "a plan needs a producer id and epoch")
	}
	id := plan.GetTransactionalId()
	if id == "" {
		return &adminpb.ApplyAbortResponse{}, t.abortInPartition(ctx, plan)
	}
	only := txn.Producer{ID: txn.ProducerID(plan.GetProducerId()), Epoch: txn.Epoch(plan.GetProducerEpoch())}
	r, err := askTxn[txn.Result](ctx, t.ask, txn.Abort{Client: caller(ctx), TransactionalID: id, Only: &only})
	if err != nil {
		return nil, err
	}
	switch kerr.TypedErrorForCode(r.Code) {
	case kerr.ProducerFenced:
		return nil, otherProducer(id, plan.GetProducerId(), plan.GetProducerEpoch())
	case kerr.InvalidTxnState:
		return nil, nothingOpen(id, "it is over")
	case kerr.ConcurrentTransactions:
		return &adminpb.ApplyAbortResponse{}, t.decided(ctx, id)
	}
	return &adminpb.ApplyAbortResponse{}, txnCoded(r.Code, id)
}

// decided says what became of a transaction that was decided before: that it was to abort is
// as good, and its markers have been sent again.
func (t *transactions) decided(ctx context.Context, id string) error {
	d, _, err := t.describe(ctx, id)
	if err == nil && d.GetState() != "PrepareAbort" && d.GetState() != "CompleteAbort" {
		return status.Errorf(codes.FailedPrecondition, "transactional id %q was decided meanwhile: %s", id, d.GetState())
	}
	return err
}

func (t *transactions) planOfPartition(ctx context.Context, req *adminpb.PlanAbortRequest) (*adminpb.AbortPlan, error) {
	h, err := t.hangingIn(ctx, req.GetTopic(), req.GetPartition(), req.GetProducerId(), req.GetProducerEpoch())
	if err != nil {
		return nil, err
	}
	return &adminpb.AbortPlan{
		ProducerId: h.GetProducerId(), ProducerEpoch: h.GetProducerEpoch(), State: "Hanging",
		Partitions:       []*adminpb.TopicPartitions{{Topic: h.GetTopic(), Partitions: []int32{h.GetPartition()}}},
		CoordinatorEpoch: h.GetCoordinatorEpoch(), StartOffset: h.GetStartOffset(),
		Note: fmt.Sprintf("an abort marker is written to %s-%d, which no transaction here would write", h.GetTopic(), h.GetPartition()),
	}, nil
}

// abortInPartition writes a marker in nobody's name, as kafka-transactions does: only where
// the same is still open, and still nobody's.
func (t *transactions) abortInPartition(ctx context.Context, plan *adminpb.AbortPlan) error {
	if len(plan.GetPartitions()) != 1 || len(plan.GetPartitions()[0].GetPartitions()) != 1 {
		return status.Error(codes.InvalidArgument, "a plan without a transactional id is of one partition")
	}
	topic, partition := plan.GetPartitions()[0].GetTopic(), plan.GetPartitions()[0].GetPartitions()[0]
	h, err := t.hangingIn(ctx, topic, partition, plan.GetProducerId(), plan.GetProducerEpoch())
	switch {
	case err != nil:
		return err
	case h.GetStartOffset() != plan.GetStartOffset():
		return status.Errorf(codes.FailedPrecondition, "%s-%d: another transaction of producer %d/%d is open now, from offset %d on",
			topic, partition, plan.GetProducerId(), plan.GetProducerEpoch(), h.GetStartOffset())
	}
	if err := t.broker.abort(ctx, h); err != nil {
		return status.Errorf(codes.Unavailable, "%s-%d: %v", topic, partition, err)
	}
	return nil
}
