package clienttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// child is `kcoord dev` as another process, on a folder that outlives it. Its
// address stays the same, since clients know it.
type child struct {
	t        testing.TB
	folder   string
	address  string
	settings []string

	mu     sync.Mutex
	cmd    *exec.Cmd // nil while it is dead
	exited chan struct{}
	lives  int
	log    []string
}

// start starts a kcoord that ends with the test. Settings are key=value.
func start(t testing.TB, settings ...string) *child {
	t.Helper()
	if err := lookAtSource(); err != nil {
		t.Fatal(err)
	}
	k := &child{t: t, folder: t.TempDir(), settings: append([]string{
		"group.initial.rebalance.delay.ms=100", // members of a test join at once
	}, settings...)}
	t.Cleanup(func() {
		k.kill()
		if t.Failed() {
			t.Logf("what kcoord said at the end:\n%s", strings.Join(k.said(), "\n"))
		}
	})
	for range 10 {
		k.address = freeAddress(t)
		if k.run() == nil {
			return k
		}
	}
	t.Fatal("kcoord does not start")
	return nil
}

// freeAddress is outside of the range that the kernel takes ports of outgoing
// connections from: while kcoord is dead, its port must not become one of them.
func freeAddress(t testing.TB) string {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// restart starts it again on the same folder.
func (k *child) restart() {
	k.t.Helper()
	if err := k.run(); err != nil {
		k.t.Fatalf("kcoord does not start again: %v\n%s", err, strings.Join(k.said(), "\n"))
	}
}

func (k *child) run() error {
	args := []string{"dev", "--listen", k.address, "--data", k.folder, "--log-format", "json"}
	for _, s := range k.settings {
		args = append(args, "--set", s)
	}
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = boundToUs()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready, exited := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(exited)
		k.follow(stderr, ready)
		_ = cmd.Wait() // killed, as a rule
	}()
	k.mu.Lock()
	k.cmd, k.exited = cmd, exited
	k.lives++
	k.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-exited:
		return fmt.Errorf("it ended instead: %v", cmd.ProcessState)
	case <-k.t.Context().Done():
		k.kill()
		return k.t.Context().Err()
	}
}

// follow reads the log to its end. The line with the address says that it has started.
func (k *child) follow(log io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Kafka string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Kafka != "" {
			close(ready)
		}
		k.mu.Lock()
		k.log = append(k.log, lines.Text())
		k.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, log)
}

func (k *child) said() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log[max(0, len(k.log)-60):]
}

// kill is kill -9, and waits until the process is gone.
func (k *child) kill() {
	k.mu.Lock()
	cmd, exited := k.cmd, k.exited
	k.cmd = nil
	k.mu.Unlock()
	if cmd == nil {
		return
	}
	select {
	case <-exited:
		k.t.Errorf("kcoord ended by itself: %v", cmd.ProcessState)
	default:
	}
	_ = cmd.Process.Kill() // the error is that it has ended
	<-exited
}

// client is a franz-go client that the test itself uses, whatever client is tested.
func (k *child) client(opts ...kgo.Opt) *kgo.Client {
	k.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(k.address), kgo.ClientID("test"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryBackoffFn(soon), kgo.MetadataMinAge(retrySoon),
	}, opts...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.CloseAllowingRebalance)
	return c
}

// topic creates a topic with as many records in each partition.
func (k *child) topic(name string, partitions int32, records int) {
	k.t.Helper()
	c := k.client()
	if _, err := kadm.NewClient(c).CreateTopic(k.t.Context(), partitions, 1, nil, name); err != nil {
		k.t.Fatalf("creating the topic %s: %v", name, err)
	}
	if err := k.produce(k.t.Context(), c, name, partitions, records); err != nil {
		k.t.Fatal(err)
	}
}

// produce writes as many records to each partition, in batches small enough for
// consumers to take turns.
func (k *child) produce(ctx context.Context, c *kgo.Client, topic string, partitions int32, records int) error {
	for range records {
		batch := make([]*kgo.Record, partitions)
		for p := range batch {
			batch[p] = &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte("value")}
		}
		if err := c.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			return fmt.Errorf("producing to %s: %w", topic, err)
		}
	}
	return nil
}
