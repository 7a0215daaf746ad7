package upstream

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lines gathers what is logged.
type lines struct {
	mu   sync.Mutex
	said []string
}

func (l *lines) Write(line []byte) (int, error) {
	var e struct{ Message, Error string }
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, strings.TrimSpace(e.Message+" "+e.Error))
	return len(line), nil
}

// next are the lines since it was asked before.
func (l *lines) next() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}

// The log tells each change once, of which an operator must know: that the broker went, that
// another cluster came in its place, that it is back, and whether clients would go past kcoord.
func TestTellsWhatChanges(t *testing.T) {
	at := "sidecar"
	b := newBroker()
	b.odd = func(_ *kmsg.MetadataRequest, r *kmsg.MetadataResponse) bool {
		r.Brokers[0].Host, r.Brokers[0].Port = at, 9092
		return true
	}
	const (
		past  = "the broker behind advertises another address than kcoord's"
		right = "the broker behind advertises kcoord's address now"
		gone  = "the broker behind cannot be asked for its topics; trying again upstream: asking"
		other = "the broker behind cannot be asked for its topics; trying again upstream: the broker belongs to another cluster"
		back  = "the broker behind answers again"
	)
	synctest.Test(t, func(t *testing.T) {
		var log lines
		up := b.open(t, Options{Refresh: time.Second, Advertised: "sidecar:9092", Log: zerolog.New(&log)})
		<-up.Ready()
		for i, step := range []struct {
			change func()
			says   []string
			down   error // ErrUnavailable: any
		}{
			{func() {}, nil, nil},
			{func() { at = "broker" }, []string{past}, nil},
			{func() { at = "sidecar" }, []string{right}, nil},
			{func() { b.down = true }, []string{gone}, ErrUnavailable},
			{func() { b.down, b.cluster = false, "other" }, []string{other}, ErrOtherCluster},
			{func() { b.down = true }, nil, ErrUnavailable},
			{func() { b.down, b.cluster, at = false, "c", "broker" }, []string{past, back}, nil},
		} {
			b.with(step.change)
			time.Sleep(5 * time.Second) // fake
			said := log.next()
			if !slices.EqualFunc(said, step.says, strings.HasPrefix) {
				t.Errorf("step %d: %q", i, said)
			}
			if err := up.Down(); (err == nil) != (step.down == nil) || errors.Is(step.down, ErrOtherCluster) && !errors.Is(err, ErrOtherCluster) {
				t.Errorf("step %d: down is %v", i, err)
			}
		}
	})
}
