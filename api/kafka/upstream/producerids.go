package upstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn"
)

// ProducerIDs asks the cluster for producer ids, so that they are none of those that its
// brokers give to others: InitProducerId without a transactional id gives a new one each time.
type ProducerIDs struct {
	b *Broker
	// ofOwn: the broker is franz-go's kfake. It takes transactional records only from
	// producers of transactional ids, so each id is asked for with one that is nobody's.
	ofOwn bool

	mu  sync.Mutex
	l   *link
	max int16
}

// ProducerIDs returns what asks for producer ids. embedded: the broker is package embedded's.
func (b *Broker) ProducerIDs(embedded bool) *ProducerIDs {
	p := &ProducerIDs{b: b, ofOwn: embedded, max: 1}
	p.l = &link{dial: b.Dial, timeout: b.o.Timeout, told: func(resp *kmsg.ApiVersionsResponse) {
		for _, k := range resp.ApiKeys {
			if k.ApiKey == 22 {
				p.max = k.MaxVersion
			}
		}
	}}
	return p
}

// Fresh returns producer ids that were never given out; at least one, or an error.
func (p *ProducerIDs) Fresh(ctx context.Context, n int) ([]txn.ProducerID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.l.open(ctx); err != nil {
		return nil, err
	}
	var ids []txn.ProducerID
	for len(ids) < n {
		id, err := p.one(ctx)
		if err != nil && len(ids) == 0 {
			return nil, err
		} else if err != nil {
			break
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (p *ProducerIDs) one(ctx context.Context) (txn.ProducerID, error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = min(p.max, 4)
	req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = math.MaxInt32, -1, -1
	if p.ofOwn {
		id := "kcoord-" + rand.Text()
		req.TransactionalID = &id
	}
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	if err := p.l.ask(ctx, req, resp); err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return 0, fmt.Errorf("upstream: InitProducerId: %w", err)
	}
	if resp.ProducerID < 0 || resp.ProducerEpoch != 0 {
		return 0, fmt.Errorf("upstream: InitProducerId gave producer id %d in epoch %d, which is not a fresh one", resp.ProducerID, resp.ProducerEpoch)
	}
	return txn.ProducerID(resp.ProducerID), nil
}

// Close ends the connection. Nobody may be using it.
func (p *ProducerIDs) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.l.close()
}
