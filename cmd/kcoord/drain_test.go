package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestDrainUnderLoad ends a kcoord while clients commit all the time: it exits in time,
// and after another start every offset is at least what was acknowledged.
func TestDrainUnderLoad(t *testing.T) {
	data := t.TempDir()
	const bound = 5 * time.Second
	at, end := startKcoord(t, "dev", "--listen", "127.0.0.1:0", "--data", data, "--set", fmt.Sprintf("shutdown.timeout.ms=%d", bound.Milliseconds()))
	c := kafkaClient(t, at)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	const committers = 16
	var acked [committers]atomic.Int64
	var warm, all sync.WaitGroup
	warm.Add(committers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range committers {
		own := kadm.NewClient(kafkaClient(t, at))
		all.Go(func() {
			for n := int64(1); ctx.Err() == nil; n++ {
				o := kadm.Offsets{}
				o.AddOffset("t", 0, n, -1)
				if err := own.CommitAllOffsets(ctx, fmt.Sprint("g", i), o); err == nil {
					acked[i].Store(n)
				}
				if n == 20 {
					warm.Done()
				}
			}
		})
	}
	warm.Wait()
	began := time.Now()
	if err := end(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if took := time.Since(began); took > bound+2*time.Second {
		t.Errorf("it took %s to end", took)
	}
	stop()
	all.Wait()
	at, end = startKcoord(t, "dev", "--listen", "127.0.0.1:0", "--data", data)
	again := kadm.NewClient(kafkaClient(t, at))
	for i := range committers {
		got, err := again.FetchOffsets(t.Context(), fmt.Sprint("g", i))
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := got.Lookup("t", 0); !ok || o.At < acked[i].Load() {
			t.Errorf("g%d: %d was acknowledged, %d is there", i, acked[i].Load(), o.At)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// startKcoord starts a kcoord; end sends it SIGTERM and waits.
func startKcoord(t *testing.T, args ...string) (at string, end func() error) {
	t.Helper()
	cmd := exec.Command("kcoord", append(args, "--log-format", "json")...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for at == "" && lines.Scan() {
		var line struct{ Kafka string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		at = line.Kafka
	}
	if at == "" {
		t.Fatal("kcoord did not start")
	}
	ended := make(chan error, 1)
	go func() {
		for lines.Scan() {
		}
		ended <- cmd.Wait()
	}()
	return at, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return <-ended
	}
}

// kafkaClient connects to an address, whatever that gives for itself.
func kafkaClient(t *testing.T, at string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(at), kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
