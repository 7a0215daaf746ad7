package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// ghost is a stale worker that goes on. It speaks the protocol itself: the
// clients' libraries would not do what it does.
type ghost struct {
	client   *kgo.Client
	producer int64
	epoch    int16
}

// ghosts commit what is not theirs any more, or would: each attempt is refused, and
// afterwards the offsets are what they were.
func (x *exactly) ghosts(ctx context.Context) error {
	x.title("dora's ghost goes on, as if nothing had happened.")
	// Topics have names in this version.
	client, err := kgo.NewClient(kgo.SeedBrokers(x.server.address), kgo.ClientID("dora"), kgo.MaxVersions(kversion.V4_0_0()))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer client.Close()
	g := &ghost{client, x.last.producer, x.last.epoch}

	x.detail("It commits her transaction, as producer %d, epoch %d:", g.producer, g.epoch)
	if err := x.refused(g.end(ctx, true), kerr.ProducerFenced, "the transaction timed out: her id is in a later epoch"); err != nil {
		return err
	}
	if err := g.init(ctx); err != nil {
		return fmt.Errorf("demo: initialising a producer: %w", err)
	}
	member, now := x.lives.membership()
	for _, attempt := range []struct {
		what       string
		member     string
		generation int32
		code       *kerr.Error
		rule       string
	}{
		{
			fmt.Sprintf("As a new producer, it commits as dora of generation %d:", x.last.generation),
			x.last.member, x.last.generation, kerr.UnknownMemberID, "her session is over: she is not in the group",
		},
		{
			fmt.Sprintf("It commits as emil, of generation %d:", now-1),
			member, now - 1, kerr.IllegalGeneration, fmt.Sprintf("the group is in generation %d", now),
		},
		{
			"It commits as nobody, as clients did before KIP-447:",
			"", -1, kerr.UnknownMemberID, "transaction.offset.commit.legacy=deny",
		},
	} {
		x.detail("%s", attempt.what)
		if err := x.refused(g.commit(ctx, attempt.member, attempt.generation), attempt.code, attempt.rule); err != nil {
			return err
		}
	}
	if err := g.end(ctx, false); err != nil {
		return fmt.Errorf("demo: ending the ghost's transaction: %w", err)
	}
	if sum, err := x.committed(ctx); err != nil || sum != x.written {
		return fmt.Errorf("demo: after the ghost %d of %d offsets are committed: %w", sum, x.written, err)
	}
	x.detail("The offsets are what they were.")
	return nil
}

// refused checks an answer, and shows it with the rule behind it.
func (x *exactly) refused(got error, want *kerr.Error, rule string) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("demo: a stale worker was answered %w, where %w was due", got, want)
	}
	x.detail("  %s: %s.", want.Message, rule)
	return nil
}

func (g *ghost) init(ctx context.Context) error {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID, r.TransactionTimeoutMillis = kmsg.StringPtr(workGroup+"-dora"), 10_000
	resp, err := r.RequestWith(ctx, g.client)
	if err != nil {
		return err
	}
	g.producer, g.epoch = resp.ProducerID, resp.ProducerEpoch
	return kerr.ErrorForCode(resp.ErrorCode)
}

// commit would have the orders of a partition done again.
func (g *ghost) commit(ctx context.Context, member string, generation int32) error {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch = workGroup+"-dora", workGroup, g.producer, g.epoch
	r.MemberID, r.Generation = member, generation
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = 1
	r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	resp, err := r.RequestWith(ctx, g.client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fmt.Errorf("an answer of %d topics", len(resp.Topics))
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func (g *ghost) end(ctx context.Context, commit bool) error {
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = workGroup+"-dora", g.producer, g.epoch, commit
	resp, err := r.RequestWith(ctx, g.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}
