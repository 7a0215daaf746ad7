package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Broker asks the brokers where the logs of partitions begin and end.
type Broker struct {
	client   *kadm.Client
	patience time.Duration
}

// patience bounds what the broker is asked for in one call.
const patience = 5 * time.Second

// NewBroker makes a Broker. dial is the way to the broker behind, which advertises
// kcoord's own address; other brokers of its cluster are dialed by theirs.
func NewBroker(advertised string, dial func(context.Context) (net.Conn, error)) (*Broker, error) {
	client, err := kgo.NewClient(
		kgo.ClientID("kcoord-admin"), kgo.SeedBrokers(advertised), kgo.RequestRetries(2), kgo.RetryTimeout(patience),
		kgo.MetadataMinAge(100*time.Millisecond), // topics are asked for by people, who have just made them
		kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == advertised {
				return dial(ctx)
			}
			return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
		}))
	if err != nil {
		return nil, fmt.Errorf("admin: a client of the broker: %w", err)
	}
	return &Broker{kadm.NewClient(client), patience}, nil
}

// Close ends the connections.
func (b *Broker) Close() { b.client.Close() }

// span is where a partition's log begins and ends.
type span struct{ start, end int64 }

// spans tells of all partitions of topics. Topics that do not exist are left out. With an error
// it tells of those partitions that could be asked about.
func (b *Broker) spans(ctx context.Context, topics []string) (map[string]map[int32]span, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	starts, err := b.client.ListStartOffsets(ctx, topics...)
	unasked := heard(err)
	if len(starts) == 0 && unasked != nil {
		return nil, unasked
	}
	ends, err := b.client.ListEndOffsets(ctx, topics...)
	if err != nil {
		unasked = heard(err)
	}
	found := map[string]map[int32]span{}
	for topic, ps := range ends {
		for p, end := range ps {
			start, ok := starts.Lookup(topic, p)
			if err := errors.Join(end.Err, start.Err); err != nil || !ok {
				if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.InvalidTopicException) {
					unasked = fmt.Errorf("%s-%d: %w", topic, p, err)
				}
				continue
			}
			if found[topic] == nil {
				found[topic] = map[int32]span{}
			}
			found[topic][p] = span{start.Offset, end.Offset}
		}
	}
	return found, unasked
}

// topics are those of these names that the broker has, whether or not their partitions have leaders.
func (b *Broker) topics(ctx context.Context, names []string) (kadm.TopicDetails, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	there, err := b.client.ListTopicsWithInternal(ctx, names...)
	return there, heard(err)
}

// missing is a status: a partition is not among those that are there, or cannot be told of. nil: it is there.
func missing(there kadm.TopicDetails, at place) error {
	known := there[at.topic]
	switch _, has := known.Partitions[at.partition]; {
	case known.Err != nil && known.Err != kerr.UnknownTopicOrPartition: //nolint:errorlint // kerr's are values
		return status.Errorf(codes.Unavailable, "%s: %v", at.topic, known.Err)
	case !has:
		return status.Errorf(codes.NotFound, "the broker has no partition %s-%d", at.topic, at.partition)
	}
	return nil
}

// at is the first offset at or after a time, the end where there is none.
func (b *Broker) at(ctx context.Context, millis int64, topics []string) (kadm.ListedOffsets, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	found, err := b.client.ListOffsetsAfterMilli(ctx, millis, topics...)
	return found, heard(err)
}

// heard says in words that the broker could not be asked. That one partition could not
// be is said with that partition.
func heard(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the broker does not answer")
	}
	if some, is := errors.AsType[*kadm.ShardErrors](err); is && !some.AllFailed && len(some.Errs) > 0 {
		return fmt.Errorf("not all partitions can be asked about: %w", some.Errs[0].Err)
	}
	return fmt.Errorf("the broker cannot be asked: %w", err)
}
