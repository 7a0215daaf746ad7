package clienttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic      = "orders"
	partitions = 6
	records    = 20 // in each partition
)

// group is a group of a test whose members are watched through their library's admin.
type group struct {
	t       *testing.T
	id      string
	library library
	kcoord  *child
	admin   admin
	ledger  *ledger
	members map[string]member // by client id
}

func newGroup(t *testing.T, l library, k *child) *group {
	k.topic(topic, partitions, records)
	return &group{t: t, id: "group-" + l.name, library: l, kcoord: k, admin: l.admin(t, k), ledger: newLedger(), members: map[string]member{}}
}

func (g *group) join(client, instance string) {
	g.members[client] = g.library.join(g.t, g.kcoord, seat{g.id, topic, client, instance, g.ledger})
}

func (g *group) leave(client string) {
	g.members[client].leave()
	delete(g.members, client)
}

func (g *group) clients() (ids []string) {
	for c := range g.members {
		ids = append(ids, c)
	}
	return slices.Sorted(slices.Values(ids))
}

// shared waits until its members share the partitions out.
func (g *group) shared() (d description) {
	g.t.Helper()
	until(g.t, fmt.Sprintf("%v share the partitions", g.clients()), func() (err error) {
		if d, err = g.admin.describe(g.id); err != nil {
			return err
		}
		return d.sharedOut(topic, partitions, g.clients()...)
	})
	return d
}

// consumed waits until everything is, and committed.
func (g *group) consumed(records int64) {
	g.t.Helper()
	until(g.t, "everything is consumed", func() error { return g.ledger.allConsumed(allAt(records)) })
	g.kept()
}

// kept looks whether what was acknowledged is committed.
func (g *group) kept() {
	g.t.Helper()
	promised := g.ledger.promised()
	until(g.t, "the offsets can be fetched", func() error {
		committed, err := g.admin.committed(g.id, topic, partitions)
		if err == nil {
			if err := kept(promised, committed); err != nil {
				g.t.Fatal(err)
			}
		}
		return err
	})
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	each(t, libraries(), func(t *testing.T, l library) {
		g := newGroup(t, l, start(t))
		g.join("anna", "")
		g.join("ben", "")
		g.shared()
		g.join("carla", "")
		g.shared()
		g.consumed(records)
		g.leave("ben")
		g.shared()
		if err := g.kcoord.produce(t.Context(), g.kcoord.client(), topic, partitions, 5); err != nil {
			t.Fatal(err)
		}
		g.consumed(records + 5)
		for _, c := range g.clients() {
			g.leave(c)
		}
		until(t, "the group is empty", func() error {
			d, err := g.admin.describe(g.id)
			if err == nil && (d.state != "Empty" || len(d.members) > 0) {
				err = fmt.Errorf("%+v", d)
			}
			return err
		})
		g.kept()
	})
}

// TestStaticMemberComesBack restarts a static member, as a deployment does: it has its
// partitions again, and the others notice nothing.
func TestStaticMemberComesBack(t *testing.T) {
	t.Parallel()
	static := slices.DeleteFunc(libraries(), func(l library) bool { return !l.static })
	each(t, static, func(t *testing.T, l library) {
		g := newGroup(t, l, start(t))
		for _, c := range []string{"anna", "ben", "carla"} {
			g.join(c, "instance-of-"+c)
		}
		before := g.shared()
		g.consumed(records)
		generation := g.members["anna"].generation()

		g.leave("ben")
		if d, err := g.admin.describe(g.id); err != nil || d.sharedOut(topic, partitions, "anna", "ben", "carla") != nil {
			t.Fatalf("a static member ended, and the group is %+v, %v", d, err)
		}
		g.join("ben", "instance-of-ben")
		until(t, "ben is back", func() error {
			d, err := g.admin.describe(g.id)
			if err != nil {
				return err
			}
			if was, is := before.member(t, "ben"), d.member(t, "ben"); was.id == is.id {
				return fmt.Errorf("ben is still %s", is.id)
			}
			return d.sharedOut(topic, partitions, g.clients()...)
		})
		if err := g.kcoord.produce(t.Context(), g.kcoord.client(), topic, partitions, 5); err != nil {
			t.Fatal(err)
		}
		g.consumed(records + 5)
		after := g.shared()
		for _, c := range g.clients() {
			was, is := before.member(t, c), after.member(t, c)
			if !slices.Equal(was.partitions[topic], is.partitions[topic]) || is.instance != "instance-of-"+c {
				t.Errorf("%s was %+v and is %+v", c, was, is)
			}
			if now := g.members[c].generation(); now != generation {
				t.Errorf("%s is in generation %d, it was %d", c, now, generation)
			}
		}
	})
}

// TestStaticMemberIsRemoved: one that will not come back is taken out by an operator.
func TestStaticMemberIsRemoved(t *testing.T) {
	t.Parallel()
	static := slices.DeleteFunc(today(), func(l library) bool { return !l.static })
	each(t, static, func(t *testing.T, l library) {
		g := newGroup(t, l, start(t))
		for _, c := range []string{"anna", "ben"} {
			g.join(c, "instance-of-"+c)
		}
		g.shared()
		g.leave("ben")
		must(t, g.admin.(remover).remove(g.id, "instance-of-ben"))
		if err := g.admin.(remover).remove(g.id, "instance-of-ben"); err == nil {
			t.Error("a member was removed twice")
		}
		g.shared()
		g.consumed(records)
	})
}

// TestLibrariesShareAGroup: members of all three agree on what they all know, and go on
// together after a kill.
func TestLibrariesShareAGroup(t *testing.T) {
	t.Parallel()
	g := newGroup(t, franz("kgo", ""), start(t))
	g.members["anna"] = joinFranz(t, g.kcoord, seat{g.id, topic, "anna", "", g.ledger}, kgo.Balancers(kgo.RangeBalancer()))
	g.members["ben"] = joinSarama(t, g.kcoord, seat{g.id, topic, "ben", "", g.ledger}, sarama.MaxVersion, func(c *sarama.Config) {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	})
	g.members["carla"] = joinKafkaGo(t, g.kcoord, seat{g.id, topic, "carla", "", g.ledger})
	g.shared()
	g.kcoord.kill()
	g.kcoord.restart()
	if err := g.kcoord.produce(t.Context(), g.kcoord.client(), topic, partitions, 5); err != nil {
		t.Fatal(err)
	}
	g.consumed(records + 5)
	g.shared()
	for c := range g.members {
		g.leave(c)
		if len(g.members) > 0 {
			g.shared()
		}
	}
}

func (d description) member(t *testing.T, client string) described {
	t.Helper()
	for _, m := range d.members {
		if m.client == client {
			slices.Sort(m.partitions[topic])
			return m
		}
	}
	t.Fatalf("%s is not a member: %+v", client, d)
	return described{}
}
