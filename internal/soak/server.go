package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is the kcoord under load.
type server struct {
	cmd    *exec.Cmd
	addr   string
	http   string
	log    string // file
	exited chan struct{}
	status error // once it has exited
}

// start starts kcoord in front of a broker, and waits until it is ready.
func start(ctx context.Context, p plan, upstream, folder string) (*server, error) {
	if err := os.Mkdir(folder, 0o777); err != nil {
		return nil, err
	}
	s := &server{exited: make(chan struct{}), log: filepath.Join(folder, "log")}
	s.cmd = exec.Command(p.kcoord, "serve", "--listen", p.listen, "--http", "127.0.0.1:0", "--upstream", upstream,
		"--data", filepath.Join(folder, "data"), "--log-format", "json",
		"--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
		"--set", fmt.Sprintf("shutdown.timeout.ms=%d", drainFor.Milliseconds()))
	s.cmd.Stdout = os.Stderr
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("soak: starting kcoord: %w", err)
	}
	ready := make(chan struct{})
	go func() {
		s.follow(stderr, log, ready)
		s.status = s.cmd.Wait()
		close(s.exited)
	}()
	select {
	case <-ready:
	case <-s.exited:
		return nil, s.over("instead of starting")
	case <-ctx.Done():
		_ = s.cmd.Process.Kill()
		return nil, ctx.Err()
	}
	return s, until(ctx, patience, func() error {
		_, err := s.get(ctx, "/readyz")
		return err
	})
}

// follow copies the log, and looks for the addresses in it.
func (s *server) follow(from io.Reader, log *os.File, ready chan<- struct{}) {
	defer log.Close()
	lines := bufio.NewReader(from)
	for {
		b, err := lines.ReadBytes('\n')
		if _, err := log.Write(b); err != nil {
			fmt.Fprintln(os.Stderr, "soak: kcoord's log:", err)
		}
		if err != nil {
			return
		}
		var line struct{ Kafka, HTTP string }
		if s.addr == "" && json.Unmarshal(b, &line) == nil && line.Kafka != "" {
			s.addr, s.http = line.Kafka, line.HTTP
			close(ready)
		}
	}
}

// get asks the http port.
func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.http+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("soak: %s: %s: %s", path, resp.Status, strings.TrimSpace(string(b)))
	}
	return b, err
}

// stop ends kcoord and says how long that took.
func (s *server) stop() (time.Duration, error) {
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-s.exited:
		return time.Since(began), s.status
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		return time.Since(began), errors.New("soak: kcoord does not end")
	}
}

// kill ends it without more ado.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
}

// over says that it has ended when it was not to.
func (s *server) over(when string) error {
	return fmt.Errorf("soak: kcoord ended %s (see %s): %s", when, s.log, s.cmd.ProcessState)
}

// state is what kcoord holds at one moment.
type state struct {
	connections, goroutines, files int
	entries, waiting               int // groups and offsets in memory; requests that wait
	heap, rss, disk                float64
	cpu                            float64 // seconds so far
}

// look reads the metrics, and with collect the heap after a collection.
func (s *server) look(ctx context.Context, collect bool) (st state, err error) {
	if collect { // twice: what pools hold outlives one
		for range 2 {
			if _, err := s.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
				return st, err
			}
		}
	}
	b, err := s.get(ctx, "/metrics")
	if err != nil {
		return st, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			name, _, _ = strings.Cut(name, "{")
			all[name] += v
		}
	}
	const mb = 1 << 20
	return state{
		connections: int(all["kafka_server_socketserver_connections"]), goroutines: int(all["go_goroutines"]),
		files: int(all["process_open_fds"]), entries: int(all["kcoord_group_resident_entries"]), waiting: int(all["kcoord_group_waiting_requests"]),
		heap: all["go_memstats_heap_alloc_bytes"] / mb, rss: all["process_resident_memory_bytes"] / mb, disk: all["kafka_log_size_bytes"] / mb,
		cpu: all["process_cpu_seconds_total"],
	}, nil
}

// until tries until there is no error, which it returns after a while.
func until(ctx context.Context, limit time.Duration, try func() error) error {
	end := time.Now().Add(limit)
	for {
		err := try()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// machineSeconds is what all processes have used of the cores, where Linux tells.
func machineSeconds() float64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	const ticks = 100 // a second: USER_HZ
	var used float64
	for i, field := range strings.Fields(line) {
		if v, err := strconv.ParseFloat(field, 64); err == nil && i != 4 && i != 5 && i < 9 { // idle, waiting for the disk; guests are in user
			used += v / ticks
		}
	}
	return used
}
