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
				time.Sleep(100 * time.Millisecond) // fake: the next questions gather behind the first
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
		if n := b.requests(); n > 4 { // a look, the first question, and all others by name and by id
			t.Fatalf("%d requests: the questions did not go out together", n)
		}
	})
}

// A topic that was deleted and made again through us is not taken for the old one,
// even by a broker that shows the change late.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"a", id(1), 1})
		d := &told{}
		up := b.open(t, Options{Refresh: time.Minute, Deleted: d.deleted})
		<-up.Ready()
		v := up.Topics()
		v.Changed(false)
		if v.Find([]byte("a")) != nil || v.FindID(id(1)) != nil {
			t.Fatal("a is shown between a change and the look after it")
		}
		synctest.Wait()
		if v.Find([]byte("a")) == nil {
			t.Fatal("a is not shown after the look")
		}
		time.Sleep(10 * time.Second)
		v.Changed(true)
		synctest.Wait() // the look that does not show the change
		if v.Find([]byte("a")) != nil {
			t.Fatal("a is shown though it may be another one by now")
		}
		ask := func() error { return v.Ask(context.Background(), []string{"a"}, nil) }
		if err := ask(); err != nil || v.Asked("a").ID != id(1) {
			t.Fatalf("before the change, a is %v, %v", v.Asked("a"), err)
		}
		b.with(func() { b.topics["a"] = Topic{"a", id(2), 1} }) // only now
		if err := ask(); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("after the change: %v", err)
		}
		synctest.Wait()
		if d.String() != "a→2" {
			t.Fatalf("told of %q after a change", d)
		}
		if err := ask(); err != nil || v.Asked("a").ID != id(2) {
			t.Fatalf("after the deletion, a is %v, %v", v.Asked("a"), err)
		}
		time.Sleep(2 * time.Second)
		if v.Find([]byte("a")) == nil {
			t.Fatal("the new a is not shown")
		}
		before := b.requests()
		time.Sleep(10 * time.Second)
		if n := b.requests() - before; n > hurriedLooks {
			t.Fatalf("%d looks in ten quiet seconds", n)
		}
		b.with(func() { b.down = true })
		v.Changed(true)
		synctest.Wait()
		if v.Find([]byte("a")) == nil {
			t.Fatal("a is not shown while the broker is down")
		}
	})
}
