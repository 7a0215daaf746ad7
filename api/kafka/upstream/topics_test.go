package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func id(n byte) (id [16]byte) { id[0] = n; return id }

func TestFindAndAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"a", id(1), 2})
		up := b.open(t, Options{Refresh: time.Second})
		<-up.Ready()
		v := up.Topics()
		if a := v.Find([]byte("a")); a == nil || a.ID != id(1) || !a.Has(1) || a.Has(2) || a.Has(-1) || v.FindID(id(1)) != a {
			t.Fatalf("a is %+v", a)
		}
		if c, ok := up.Cluster(); !ok || c != (Cluster{"c", 4}) {
			t.Fatalf("cluster %+v", c)
		}
		b.with(func() { b.topics["b"], b.topics["c"] = Topic{"b", id(2), 1}, Topic{"c", id(3), 1} })
		if v.Find([]byte("b")) != nil {
			t.Fatal("b is known before it was asked for")
		}
		if err := v.Ask(context.Background(), []string{"b", "none"}, [][16]byte{id(3), id(9), {}}); err != nil {
			t.Fatal(err)
		}
		if v.Asked("b") == nil || v.AskedID(id(3)) == nil || v.Asked("none") != nil || v.FindID(id(9)) != nil || v.FindID([16]byte{}) != nil {
			t.Fatal("what was asked for is not what is found")
		}
		b.with(func() { b.topics["a"] = Topic{"a", id(1), 5} })
		time.Sleep(1100 * time.Millisecond) // fake
		if !v.Find([]byte("a")).Has(4) {
			t.Fatal("new partitions are not seen within a refresh")
		}
	})
}

// A burst of questions is one request at a time.
func TestAskTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		up := b.open(t, Options{})
		<-up.Ready()
		synctest.Wait()
		before := b.requests()
		slow := make(chan struct{})
		b.with(func() {
			b.odd = func(*kmsg.MetadataRequest, *kmsg.MetadataResponse) bool { <-slow; return true }
		})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if err := up.Topics().Ask(context.Background(), []string{fmt.Sprint("t", i)}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(slow)
		all.Wait()
		if n := b.requests() - before; n > 100/2 {
			t.Fatalf("%d requests for 100 questions at once", n)
		}
	})
}

// told collects what is deleted.
type told struct {
	mu   sync.Mutex
	all  []string
	fail int
}

func (d *told) deleted(topics map[string][16]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail > 0 {
		d.fail--
		return errors.New("not now")
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		if now := topics[name]; now != ([16]byte{}) {
			name += fmt.Sprint("→", now[0])
		}
		d.all = append(d.all, name)
	}
	return nil
}

func (d *told) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.all, " ")
}

// Each row changes what the broker answers, at one moment after the other, a
// refresh apart.
func TestDeleted(t *testing.T) {
	remove := func(names ...string) func(*broker) {
		return func(b *broker) {
			for _, n := range names {
				delete(b.topics, n)
			}
		}
	}
	add := func(t Topic) func(*broker) { return func(b *broker) { b.topics[t.Name] = t } }
	odd := func(f func(*kmsg.MetadataRequest, *kmsg.MetadataResponse) bool) func(*broker) {
		return func(b *broker) { b.odd = f }
	}
	none := func(*broker) {}
	full := func(f func(*kmsg.MetadataResponse)) func(*broker) { // of full answers alone
		return odd(func(req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) bool {
			if req.Topics == nil {
				f(resp)
			}
			return true
		})
	}
	without := func(name string) func(*broker) {
		return full(func(resp *kmsg.MetadataResponse) {
			resp.Topics = slices.DeleteFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool { return *t.Topic == name })
		})
	}
	for _, tc := range []struct {
		name  string
		moves []func(*broker)
		want  string
	}{
		{"deleted", []func(*broker){remove("a"), none}, "a"},
		{"once is not enough", []func(*broker){remove("a")}, ""},
		{"the last ones", []func(*broker){remove("a", "b"), none, none}, ""},
		{"the last ones, for good", []func(*broker){remove("a", "b"), none, none, none, none}, "a b"},
		{"flapping", []func(*broker){without("a"), odd(nil), without("a"), odd(nil), without("a"), odd(nil)}, ""},
		{"left out for long, and there by its name", []func(*broker){without("a"), none, none, none, none, none}, ""},
		{"left out of all answers that name nothing", []func(*broker){full(func(r *kmsg.MetadataResponse) { r.Topics = nil }), none, none, none, none, none, none}, ""},
		{"no brokers", []func(*broker){func(b *broker) {
			b.topics = map[string]Topic{}
			b.odd = func(_ *kmsg.MetadataRequest, r *kmsg.MetadataResponse) bool { r.Brokers = nil; return true }
		}, none, none, none, none, none, none}, ""},
		{"another cluster", []func(*broker){func(b *broker) {
			b.topics, b.cluster = map[string]Topic{}, "other"
		}, none, none, none, none, none, none}, ""},
		{"hangs up", []func(*broker){func(b *broker) {
			b.topics = map[string]Topic{}
			b.odd = func(*kmsg.MetadataRequest, *kmsg.MetadataResponse) bool { return false }
		}, none, none, none, none, none, none}, ""},
		{"not authorized any more", []func(*broker){func(b *broker) {
			b.topics = map[string]Topic{"b": {"b", id(2), 1}}
			b.odd = func(req *kmsg.MetadataRequest, r *kmsg.MetadataResponse) bool {
				for i := range r.Topics {
					if req.Topics != nil && *r.Topics[i].Topic == "a" {
						r.Topics[i].ErrorCode = kerr.TopicAuthorizationFailed.Code
					}
				}
				return true
			}
		}, none, none, none, none}, ""},
		{"with an error, but there", []func(*broker){full(func(r *kmsg.MetadataResponse) {
			for i := range r.Topics {
				r.Topics[i].ErrorCode = kerr.LeaderNotAvailable.Code
			}
		}), none, none, none}, ""},
		{"made again", []func(*broker){add(Topic{"a", id(7), 1})}, "a→7"},
		{"made again after a look without it", []func(*broker){remove("a"), add(Topic{"a", id(7), 1}), none}, "a→7"},
		{"made again without ids", []func(*broker){add(Topic{"a", [16]byte{}, 1}), none}, ""},
		{"deleted twice", []func(*broker){remove("a"), none, add(Topic{"a", id(8), 1}), remove("a"), none}, "a a"},
		{"the broker was down in between", []func(*broker){func(b *broker) { b.down = true }, none, func(b *broker) { b.down = false }, none}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(Topic{"a", id(1), 1}, Topic{"b", id(2), 1})
				d := &told{}
				up := b.open(t, Options{Refresh: time.Second, Deleted: d.deleted})
				<-up.Ready()
				time.Sleep(500 * time.Millisecond) // fake: between two looks
				for _, move := range tc.moves {
					b.with(func() { move(b) })
					time.Sleep(time.Second)
				}
				if d.String() != tc.want {
					t.Fatalf("told of %q, not %q", d, tc.want)
				}
			})
		})
	}
}

// Until its deletion was heard, no new topic of the name is shown.
func TestNewTopicWaitsForTheOldOnesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"a", id(1), 1})
		heard := make(chan struct{})
		fails := 1
		up := b.open(t, Options{Refresh: time.Second, Deleted: func(map[string][16]byte) error {
			<-heard
			if fails--; fails >= 0 {
				return errors.New("not now")
			}
			return nil
		}})
		<-up.Ready()
		v := up.Topics()
		b.with(func() { b.topics["a"] = Topic{"a", id(2), 3} })
		if err := v.Ask(context.Background(), []string{"a"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if v.Find([]byte("a")) != nil || v.FindID(id(1)) != nil || v.FindID(id(2)) != nil {
			t.Fatal("the topic is shown")
		}
		close(heard) // and it is told again after its error
		time.Sleep(2100 * time.Millisecond)
		if a := v.Find([]byte("a")); a == nil || a.ID != id(2) {
			t.Fatalf("the new topic is %+v", a)
		}
	})
}

func TestBrokerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"a", id(1), 1})
		up := b.open(t, Options{Refresh: time.Second, MaxAge: 10 * time.Second})
		<-up.Ready()
		v := up.Topics()
		b.with(func() { b.down = true })
		time.Sleep(9 * time.Second)
		if v.Find([]byte("a")) == nil {
			t.Fatal("a known topic is not shown while the broker is down")
		}
		if err := v.Ask(context.Background(), []string{"b"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if v.Find([]byte("a")) != nil {
			t.Fatal("a topic is shown beyond MaxAge")
		}
		if err := v.Ask(context.Background(), []string{"a"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		b.with(func() { b.down = false })
		if err := v.Ask(context.Background(), []string{"b"}, nil); err != nil {
			t.Fatal(err)
		}
		if v.Find([]byte("a")) == nil || v.Find([]byte("b")) != nil {
			t.Fatal("the view is not whole after the broker came back")
		}
	})
}

// Who asks a broker that hangs is told so as soon as one question may take, whatever else it
// is being asked.
func TestBrokerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Topic{"a", id(1), 1})
		up := b.open(t, Options{Refresh: time.Second, Timeout: 3 * time.Second})
		<-up.Ready()
		b.with(func() { b.hangs = true })
		time.Sleep(1500 * time.Millisecond)
		for range 20 {
			began := time.Now()
			if err := up.Topics().Ask(context.Background(), []string{"b"}, nil); !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("told after %s", took)
			}
		}
		began := time.Now()
		up.Configure(2*time.Second, time.Minute)
		up.Configure(time.Second, time.Minute)
		if took := time.Since(began); took > 0 {
			t.Errorf("new settings waited for %s", took)
		}
		b.with(func() { b.hangs = false })
		time.Sleep(5 * time.Second)
		if err := up.Topics().Ask(context.Background(), []string{"a"}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Before the broker has answered, nothing may look as if it did not exist.
func TestNeverUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.down = true
		up := b.open(t, Options{})
		if err := up.Topics().Ask(context.Background(), []string{"a"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := up.Topics().Ask(ctx, []string{"a"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if _, known := up.Cluster(); known || up.Versions() != nil {
			t.Fatal("something is known of a broker that never answered")
		}
		up.Close()
		if err := up.Topics().Ask(context.Background(), []string{"a"}, nil); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	})
}

func TestNodeID(t *testing.T) {
	seven := int32(7)
	two := func(_ *kmsg.MetadataRequest, r *kmsg.MetadataResponse) bool {
		br := kmsg.NewMetadataResponseBroker()
		br.NodeID, br.Host, br.Port = 5, "sidecar", 9092
		r.Brokers = append(r.Brokers, br)
		return true
	}
	for _, tc := range []struct {
		name string
		o    Options
		odd  func(*kmsg.MetadataRequest, *kmsg.MetadataResponse) bool
		want int32
	}{
		{"alone", Options{}, nil, 4},
		{"said", Options{NodeID: &seven}, two, 7},
		{"by the advertised address", Options{Advertised: "sidecar:9092"}, two, 5},
		{"cannot be told", Options{Advertised: "elsewhere:1"}, two, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBroker()
			b.odd = tc.odd
			up := b.open(t, tc.o)
			<-up.Ready()
			if c, _ := up.Cluster(); c.NodeID != tc.want {
				t.Fatalf("node %d, not %d", c.NodeID, tc.want)
			}
		})
	}
}
