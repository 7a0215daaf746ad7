package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kcoord/kcoord/api/admin/adminpb"
)

// ownCoordinator is a broker that is asked as its own clients did before there was a
// kcoord. The broker names kcoord's address as its own where it is behind one: that
// name must not be followed, or kcoord would be asked for what it was given.
type ownCoordinator struct {
	*kadm.Client
	address string
	kgo     *kgo.Client
	alone   atomic.Bool // the cluster has this one broker
}

// connectBroker goes to a broker. kcoord may be nil: then nobody is known to stand in front.
func connectBroker(ctx context.Context, address string, kcoord *adminpb.DescribeNodeResponse) (*ownCoordinator, error) {
	if kcoord != nil && (same(address, kcoord.GetAdvertised()) || same(address, kcoord.GetListen())) {
		return nil, mistake{fmt.Errorf("%s is kcoord itself: name the broker's own listener (kcoord's upstream is %s)", address, kcoord.GetUpstream())}
	}
	b := &ownCoordinator{address: address}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ClientID("kcoord"), kgo.RetryTimeout(5*time.Second), kgo.RequestRetries(3),
		kgo.Dialer(func(ctx context.Context, network, to string) (net.Conn, error) {
			if b.alone.Load() || kcoord != nil && same(to, kcoord.GetAdvertised()) {
				to = address
			}
			return (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, network, to)
		}))
	if err != nil {
		return nil, mistake{fmt.Errorf("%s: %w", address, err)}
	}
	b.kgo, b.Client = client, kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	m, err := b.BrokerMetadata(ctx)
	if err != nil {
		client.Close()
		return nil, mistake{fmt.Errorf("no broker answers on %s: %s", address, plain(err))}
	}
	b.alone.Store(len(m.Brokers) == 1)
	return b, nil
}

// same compares addresses as they are written, and by their port where one of them is
// that of all interfaces.
func same(a, b string) bool {
	ah, ap, err := net.SplitHostPort(a)
	bh, bp, err2 := net.SplitHostPort(b)
	if err != nil || err2 != nil || ap != bp {
		return false
	}
	return strings.EqualFold(local(ah), local(bh)) || unspecified(ah) && local(bh) == "127.0.0.1" || unspecified(bh) && local(ah) == "127.0.0.1"
}

func unspecified(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }

func local(host string) string {
	if host == "localhost" || host == "::1" {
		return "127.0.0.1"
	}
	return host
}

// plain is an error without what a client library says around it.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Message
	}
	return err.Error()
}
