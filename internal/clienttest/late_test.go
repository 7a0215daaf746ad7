package clienttest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// detour is a way to kcoord on which one EndTxn is held up: its client is cut off, as
// by a network that fails, and goes on over a new connection, while the request stays
// on its way.
type detour struct {
	t     *testing.T
	l     net.Listener
	to    string
	all   sync.WaitGroup
	mu    sync.Mutex
	armed bool
	conns []net.Conn

	held   chan struct{} // closed when a request is held
	frame  []byte
	server net.Conn // that it is to go to
}

func newDetour(t *testing.T, to string) *detour {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &detour{t: t, l: l, to: to, held: make(chan struct{})}
	d.all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			d.all.Go(func() { d.carry(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		d.mu.Lock()
		for _, nc := range d.conns {
			nc.Close()
		}
		d.mu.Unlock()
		d.all.Wait()
	})
	return d
}

// dial is for clients, wherever they think that kcoord is.
func (d *detour) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.l.Addr().String())
}

// Dial makes it a proxy.Dialer, for sarama.
func (d *detour) Dial(network, addr string) (net.Conn, error) {
	return d.dial(context.Background(), network, addr)
}

// hold has the next EndTxn held up.
func (d *detour) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = true
}

func (d *detour) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	d.mu.Lock()
	d.conns = append(d.conns, client, server)
	d.mu.Unlock()
	d.all.Go(func() {
		_, _ = io.Copy(client, server)
		client.Close()
	})
	for {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(client, frame); err != nil {
			server.Close()
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(client, frame[4:]); err != nil {
			server.Close()
			return
		}
		d.mu.Lock()
		if key := binary.BigEndian.Uint16(frame[4:]); d.armed && key == 26 {
			d.armed, d.frame, d.server = false, frame, server
			close(d.held)
			d.mu.Unlock()
			return // and the client finds itself cut off
		}
		d.mu.Unlock()
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}

// arrive lets the request arrive at last.
func (d *detour) arrive() {
	<-d.held
	if _, err := d.server.Write(d.frame); err != nil {
		d.t.Fatal(err)
	}
}

// lateProducer is a transactional producer of one library, on transaction version 1.
type lateProducer interface {
	begin() error
	write(value string) error
	end(commit bool) error
	close()
}

// TestEndTxnThatComesLate is the hole in Kafka's transaction protocol before version 2: the
// first transaction's EndTxn is held up, its client asks again and goes on with the
// next transaction, which it will abort. Then the first EndTxn arrives. Kafka
// cannot tell it from one of the second transaction, and commits that.
func TestEndTxnThatComesLate(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(t *testing.T, d *detour) lateProducer
	}{{"kgo", lateFranz}, {"sarama", lateSarama}} {
		for _, fencing := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/fencing=%t", c.name, fencing), func(t *testing.T) {
				t.Parallel()
				k := start(t, fmt.Sprintf("transaction.stale.connection.fencing=%t", fencing))
				k.topic("t", 1, 0)
				d := newDetour(t, k.address)
				p := c.open(t, d)
				defer p.close()
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(p.begin())
				must(p.write("first"))
				d.hold()
				must(p.end(true)) // over a new connection
				must(p.begin())
				must(p.write("second"))
				d.arrive()
				if fencing {
					until(t, "the late request is refused", func() error {
						if !strings.Contains(strings.Join(k.said(), "\n"), "older connection than its producer's latest was refused") {
							return errNotYet
						}
						return nil
					})
					must(p.end(false))
				} else {
					until(t, "the late request is taken for one of the second transaction", func() error { return k.stable("t") })
					_ = p.end(false) // INVALID_TXN_STATE, or whatever the library makes of it
				}
				got := k.readCommitted("t")
				if want := map[bool][]string{true: {"first"}, false: {"first", "second"}}[fencing]; !slices.Equal(got, want) {
					t.Errorf("committed: %q, want %q", got, want)
				}
			})
		}
	}
}

// stable says whether no transaction is open in a topic's first partition.
func (k *child) stable(topic string) error {
	a := kadm.NewClient(k.client())
	s, err := a.ListCommittedOffsets(k.t.Context(), topic)
	if err != nil {
		return err
	}
	h, err := a.ListEndOffsets(k.t.Context(), topic)
	if err != nil {
		return err
	}
	if s[topic][0].Offset != h[topic][0].Offset {
		return errNotYet
	}
	return nil
}

// readCommitted reads the committed records of a topic's first partition.
func (k *child) readCommitted(topic string) (values []string) {
	k.t.Helper()
	until(k.t, "every transaction has ended", func() error { return k.stable(topic) })
	h, err := kadm.NewClient(k.client()).ListEndOffsets(k.t.Context(), topic)
	if err != nil {
		k.t.Fatal(err)
	}
	c := k.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	for end := h[topic][0].Offset; ; {
		fs := c.PollFetches(k.t.Context())
		last := int64(-1)
		fs.EachRecord(func(r *kgo.Record) {
			if last = r.Offset; !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
		if last >= end-1 || k.t.Context().Err() != nil { // the last one is a marker
			return values
		}
	}
}

type franzProducer struct{ c *kgo.Client }

func lateFranz(t *testing.T, d *detour) lateProducer {
	c, err := kgo.NewClient(
		kgo.SeedBrokers(d.to), kgo.Dialer(d.dial), kgo.TransactionalID("x"), kgo.MaxVersions(kversion.V3_6_0()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(retrySoon), kgo.DefaultProduceTopic("t"),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &franzProducer{c}
}

func (p *franzProducer) begin() error { return p.c.BeginTransaction() }
func (p *franzProducer) write(value string) error {
	return p.c.ProduceSync(context.Background(), kgo.StringRecord(value)).FirstErr()
}
func (p *franzProducer) end(commit bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.c.EndTransaction(ctx, kgo.TransactionEndTry(commit))
}
func (p *franzProducer) close() { p.c.Close() }

type saramaProducer struct{ p sarama.SyncProducer }

func lateSarama(t *testing.T, d *detour) lateProducer {
	c := saramaConfig(sarama.V2_8_0_0, "late")
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, d
	c.Net.MaxOpenRequests, c.Producer.Idempotent, c.Producer.RequiredAcks = 1, true, sarama.WaitForAll
	c.Producer.Return.Successes, c.Producer.Partitioner = true, sarama.NewManualPartitioner
	c.Producer.Transaction.ID, c.Producer.Transaction.Retry.Max, c.Producer.Transaction.Retry.Backoff = "x", 100, retrySoon
	p, err := sarama.NewSyncProducer([]string{d.to}, c)
	if err != nil {
		t.Fatal(err)
	}
	return &saramaProducer{p}
}

func (p *saramaProducer) begin() error { return p.p.BeginTxn() }
func (p *saramaProducer) write(value string) error {
	_, _, err := p.p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(value)})
	return err
}
func (p *saramaProducer) end(commit bool) error {
	if commit {
		return p.p.CommitTxn()
	}
	return p.p.AbortTxn()
}
func (p *saramaProducer) close() { p.p.Close() }

// TestSaramaCommitsOffsetsInTransactions: sarama names no member when it commits
// offsets with a transaction, so the policy decides.
func TestSaramaCommitsOffsetsInTransactions(t *testing.T) {
	for policy, allowed := range map[string]bool{"allow": true, "warn": true, "deny": false} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			k := start(t, "transaction.offset.commit.legacy="+policy, "transaction.offset.commit.legacy.groups=other=allow")
			k.topic("t", 1, 0)
			d := newDetour(t, k.address)
			p := lateSarama(t, d).(*saramaProducer)
			defer p.close()
			commit := func(group string, offset int64) error {
				if err := p.begin(); err != nil {
					return err
				}
				if err := p.write("a"); err != nil {
					return err
				}
				offsets := map[string][]*sarama.PartitionOffsetMetadata{"t": {{Partition: 0, Offset: offset}}}
				if err := p.p.AddOffsetsToTxn(offsets, group); err != nil {
					return errors.Join(err, p.end(false))
				}
				if err := p.end(true); err != nil {
					return errors.Join(err, p.end(false))
				}
				return nil
			}
			err := commit("g", 7)
			committed := func(group string) int64 {
				os, err := kadm.NewClient(k.client()).FetchOffsets(t.Context(), group)
				if err != nil {
					t.Fatal(err)
				}
				if o, has := os.Lookup("t", 0); has {
					return o.At
				}
				return -1
			}
			if allowed {
				if err != nil {
					t.Fatal(err)
				}
				until(t, "the offset is committed", func() error {
					if at := committed("g"); at != 7 {
						return fmt.Errorf("%d", at)
					}
					return nil
				})
			} else if at := committed("g"); err == nil || at != -1 {
				t.Fatalf("it was denied: %v, %d", err, at)
			}
			if err := commit("other", 9); err != nil || committed("other") != 9 {
				until(t, "the other group's offset is committed", func() error {
					if err != nil {
						return err
					}
					if at := committed("other"); at != 9 {
						return fmt.Errorf("%d", at)
					}
					return nil
				})
			}
			if said := strings.Contains(strings.Join(k.said(), "\n"), "names no member of its group"); said != (policy != "allow") {
				t.Errorf("a log line: %t", said)
			}
		})
	}
}
