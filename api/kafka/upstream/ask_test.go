package upstream

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What cannot be told of one topic fails who asked for it, and none of those whose questions
// went out together with that one.
func TestOneTopicFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"dying", id(1), 1}, Topic{"hidden", id(2), 1}, Topic{"well", id(3), 1})
		heard := make(chan struct{})
		up := b.open(t, Options{Refresh: time.Hour, Deleted: func(map[string][16]byte) error { <-heard; return nil }})
		defer close(heard)
		<-up.Ready()
		v := up.Topics()
		b.with(func() {
			b.topics["dying"] = Topic{"dying", id(4), 1}
			b.odd = func(req *kmsg.MetadataRequest, r *kmsg.MetadataResponse) bool {
				time.Sleep(time.Second) // fake: the next questions gather behind the first
				for i := range r.Topics {
					if n := r.Topics[i].Topic; n != nil && *n == "hidden" {
						r.Topics[i].ErrorCode = kerr.TopicAuthorizationFailed.Code
					}
				}
				return true
			}
		})
		go v.Ask(context.Background(), []string{"first"}, nil)
		synctest.Wait()
		var askers sync.WaitGroup
		ask := func(fails bool, names []string, ids ...[16]byte) {
			askers.Go(func() {
				if err := v.Ask(context.Background(), names, ids); errors.Is(err, ErrUnavailable) != fails {
					t.Errorf("asked for %q %x: %v", names, ids, err)
				}
			})
		}
		ask(true, []string{"dying"})
		ask(true, nil, id(4))
		ask(true, []string{"well", "hidden"})
		ask(false, []string{"well"})
		ask(false, []string{"missing"})
		ask(false, nil, id(3))
		ask(false, nil, id(9))
		askers.Wait()
		if n := b.requests(); n > 3 {
			t.Fatalf("%d requests: the questions did not go out together", n)
		}
	})
}
