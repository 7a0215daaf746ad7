package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/internal/clienthost"
	"github.com/kcoord/kcoord/metadataversion"
)

type transactions struct {
	adminpb.UnimplementedTransactionsServer
	ask    Coordinator
	broker *Broker
}

// askTxn asks the shard of a transactional id.
func askTxn[T any](ctx context.Context, c Coordinator, req txn.Request) (T, error) {
	r, err := await(ctx, func(reply func(txn.Response, error)) { c.Txn(req, reply) })
	if err != nil {
		var none T
		return none, err
	}
	return r.(T), nil
}

// ListTransactions asks every shard.
func (t *transactions) ListTransactions(ctx context.Context, req *adminpb.ListTransactionsRequest) (*adminpb.ListTransactionsResponse, error) {
	l := txn.List{States: req.GetStates(), ProducerIDs: req.GetProducerIds(), LongerThan: -1}
	if req.LongerThanMs != nil {
		l.LongerThan = time.Duration(max(req.GetLongerThanMs(), 0)) * time.Millisecond
	}
	pattern := req.GetPattern()
	re, code := txn.Pattern(&pattern)
	if code != 0 {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no regular expression of RE2", pattern)
	}
	l.Pattern = re
	listed, err := t.list(ctx, l)
	if err != nil {
		return nil, err
	}
	return &adminpb.ListTransactionsResponse{Transactions: listed}, nil
}

// list is by id. States that are none are the caller's mistake: a filter that lets nothing
// pass looks like a cluster without transactions.
func (t *transactions) list(ctx context.Context, l txn.List) ([]*adminpb.ListedTransaction, error) {
	shards, err := await(ctx, func(reply func([]txn.Response, error)) { t.ask.EachTxn(l, reply) })
	if err != nil {
		return nil, err
	}
	var all []*adminpb.ListedTransaction
	for _, s := range shards {
		resp := s.(*kmsg.ListTransactionsResponse)
		if len(resp.UnknownStateFilters) > 0 {
			return nil, status.Errorf(codes.InvalidArgument, "no transaction is ever %q: the states are Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit and CompleteAbort",
				resp.UnknownStateFilters[0])
		}
		for _, listed := range resp.TransactionStates {
			all = append(all, &adminpb.ListedTransaction{
				TransactionalId: listed.TransactionalID, State: listed.TransactionState, ProducerId: listed.ProducerID,
			})
		}
	}
	slices.SortFunc(all, func(a, b *adminpb.ListedTransaction) int { return cmp.Compare(a.TransactionalId, b.TransactionalId) })
	return all, nil
}

// ListQuarantinedTransactions asks every shard.
func (t *transactions) ListQuarantinedTransactions(ctx context.Context, _ *adminpb.ListQuarantinedTransactionsRequest) (*adminpb.ListQuarantinedTransactionsResponse, error) {
	shards, err := await(ctx, func(reply func([]txn.Response, error)) { t.ask.EachTxn(txn.Quarantined{}, reply) })
	if err != nil {
		return nil, err
	}
	resp := &adminpb.ListQuarantinedTransactionsResponse{}
	for _, s := range shards {
		for _, q := range s.([]txn.Quarantine) {
			kind, _, _ := metadataversion.Describe(metadataversion.TransactionsLog, q.Key, q.Value)
			resp.Transactions = append(resp.Transactions, &adminpb.QuarantinedTransaction{
				TransactionalId: q.TransactionalID,
				Record:          &adminpb.UnreadableRecord{Type: kind, Key: q.Key, Value: q.Value, Problem: q.Err.Error()},
			})
		}
	}
	slices.SortFunc(resp.Transactions, func(a, b *adminpb.QuarantinedTransaction) int {
		return cmp.Compare(a.TransactionalId, b.TransactionalId)
	})
	return resp, nil
}

// DescribeTransactions asks the shard of each id.
func (t *transactions) DescribeTransactions(ctx context.Context, req *adminpb.DescribeTransactionsRequest) (*adminpb.DescribeTransactionsResponse, error) {
	resp := &adminpb.DescribeTransactionsResponse{}
	for _, id := range req.GetTransactionalIds() {
		d, _, err := t.describe(ctx, id)
		if err != nil {
			return nil, err
		}
		resp.Transactions = append(resp.Transactions, d)
	}
	return resp, nil
}

func (t *transactions) describe(ctx context.Context, id string) (*adminpb.DescribedTransaction, txn.Explanation, error) {
	x, err := askTxn[txn.Explanation](ctx, t.ask, txn.Explain{TransactionalID: id})
	if err != nil {
		return nil, x, err
	}
	d := &adminpb.DescribedTransaction{TransactionalId: id, Exists: x.Exists, Quarantined: x.Quarantined}
	if !x.Heard.IsZero() {
		d.OwnerClientId, d.OwnerHost, d.HeardMs = &x.Owner.ID, &x.Owner.Host, millis(x.Heard)
	}
	switch {
	case x.Quarantined:
		d.State, d.Pending = "Unknown", "its record cannot be read: it is left as it is"
		return d, x, nil
	case !x.Exists:
		return d, x, nil
	}
	d.State, d.ProducerId, d.ProducerEpoch = x.Status, int64(x.Producer.ID), int32(x.Producer.Epoch)
	d.StartedMs, d.UpdatedMs, d.TimeoutMs = millis(x.Started), x.Updated.UnixMilli(), x.Timeout.Milliseconds()
	d.TransactionVersion = int32(max(x.Version, 1))
	for _, topic := range x.Topics {
		if topic.Name == txn.OffsetsTopic {
			d.OffsetsPartitions = slices.Clone(topic.Partitions)
		} else {
			d.Partitions = append(d.Partitions, &adminpb.TopicPartitions{Topic: topic.Name, Partitions: slices.Clone(topic.Partitions)})
		}
	}
	if d.Groups, err = t.groups(ctx, x); err != nil {
		return nil, x, err
	}
	d.Pending = pending(x)
	return d, x, nil
}

// groups have offsets that wait for the transaction's end. The transaction itself knows their
// shards alone.
func (t *transactions) groups(ctx context.Context, x txn.Explanation) ([]string, error) {
	if !slices.ContainsFunc(x.Topics, func(t txn.Topic) bool { return t.Name == txn.OffsetsTopic }) {
		return nil, nil
	}
	shards, err := await(ctx, func(reply func([]group.Response, error)) {
		t.ask.EachGroup(group.PendingOf{Producer: int64(x.Producer.ID)}, reply)
	})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range shards {
		all = append(all, s.([]string)...)
	}
	slices.Sort(all)
	return all, nil
}

// pending says what a transaction waits for.
func pending(x txn.Explanation) string {
	switch x.Status {
	case "Ongoing":
		if x.Deadline.IsZero() {
			return "its producer, for as long as that takes"
		}
		return fmt.Sprintf("its producer, until %s; then it is aborted", x.Deadline.UTC().Format(time.RFC3339))
	case "PrepareCommit", "PrepareAbort":
		return fmt.Sprintf("markers of %d partitions are to be written", x.Topics.Len())
	}
	return ""
}

func millis(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	n := at.UnixMilli()
	return &n
}

// ExplainTransaction tells of events, too.
func (t *transactions) ExplainTransaction(ctx context.Context, req *adminpb.ExplainTransactionRequest) (*adminpb.ExplainTransactionResponse, error) {
	d, x, err := t.describe(ctx, req.GetTransactionalId())
	if err != nil {
		return nil, err
	}
	if !d.GetExists() && len(x.Events) == 0 {
		return nil, noTransaction(req.GetTransactionalId())
	}
	resp := &adminpb.ExplainTransactionResponse{Transaction: d}
	for _, ev := range x.Events {
		resp.Events = append(resp.Events, &adminpb.TransactionEvent{
			AtMs: ev.At.UnixMilli(), Rule: ev.Rule.String(), ClientId: ev.By.ID, ClientHost: ev.By.Host, Request: ev.Request,
			ProducerIdBefore: int64(ev.Before.ID), ProducerEpochBefore: int32(ev.Before.Epoch),
			ProducerIdAfter: int64(ev.After.ID), ProducerEpochAfter: int32(ev.After.Epoch), Count: int32(ev.Count), Words: ev.String(),
		})
	}
	return resp, nil
}

func noTransaction(id string) error {
	return status.Errorf(codes.NotFound, "there is no transactional id %q", id)
}

// txnCoded is a status for one of Kafka's codes about a transactional id; nil for 0.
func txnCoded(code int16, id string) error {
	switch e := kerr.TypedErrorForCode(code); e {
	case nil:
		return nil
	case kerr.TransactionalIDNotFound:
		return noTransaction(id)
	case kerr.InvalidRequest:
		return status.Errorf(codes.InvalidArgument, "%q is no transactional id", id)
	case kerr.CoordinatorLoadInProgress:
		return status.Errorf(codes.Unavailable, "transactional id %q has a record that cannot be read (kcoord txns quarantined)", id)
	default:
		return status.Errorf(codes.FailedPrecondition, "transactional id %q: %s", id, e.Message)
	}
}

// caller is who calls the API, as events show it.
func caller(ctx context.Context) txn.Client {
	c := txn.Client{ID: "kcoord-admin"}
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		c.Host = clienthost.Of(p.Addr)
	}
	return c
}
