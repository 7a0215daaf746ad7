package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// server is the kcoord that the demo kills and starts again.
type server struct {
	executable string
	folder     string
	address    string // known from the first start on, and kept: clients know it
	admin      string // of the latest start

	mu      sync.Mutex
	process *exec.Cmd
	exited  chan struct{}
	last    string // line that it logged as a warning or worse
}

// start starts the process and waits until it answers.
func (s *server) start(ctx context.Context) (took time.Duration, err error) {
	listen := s.address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	args := []string{"dev", "--listen", listen, "--admin", "127.0.0.1:0", "--data", filepath.Join(s.folder, "data"), "--log-format", "json"}
	for _, quicker := range []string{ // than for machines that are far apart
		"group.initial.rebalance.delay.ms=500", "group.min.session.timeout.ms=1000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
	} {
		args = append(args, "--set", quicker)
	}
	cmd := exec.Command(s.executable, args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("demo: starting kcoord: %w", err)
	}
	ready, exited := make(chan [2]string, 1), make(chan struct{})
	s.mu.Lock()
	s.process, s.exited = cmd, exited
	s.mu.Unlock()
	go func() {
		defer close(exited)
		s.follow(log, ready)
		_ = cmd.Wait() // killed, as a rule
	}()
	select {
	case at := <-ready:
		s.address, s.admin = at[0], at[1]
		return time.Since(began).Round(time.Millisecond), nil
	case <-exited:
		return 0, errors.New("demo: kcoord ended instead of starting")
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// follow reads the log until the process has ended.
func (s *server) follow(log io.Reader, ready chan<- [2]string) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Level, Message, Error, Kafka, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line.Level, line.Message = "error", lines.Text()
		}
		if line.Kafka != "" {
			select {
			case ready <- [2]string{line.Kafka, line.Admin}:
			default:
			}
		}
		if line.Level != "info" && line.Level != "debug" {
			s.mu.Lock()
			s.last = line.Message
			if line.Error != "" {
				s.last += ": " + line.Error
			}
			s.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, log)
}

// kill ends the process as the kernel does when memory is short, and waits until it is gone.
func (s *server) kill() {
	s.mu.Lock()
	process, exited := s.process, s.exited
	s.process = nil
	s.mu.Unlock()
	if process == nil {
		return
	}
	_ = process.Process.Kill() // it may have ended by itself
	<-exited
}

// explain adds what kcoord said last to an error.
func (s *server) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return err
	}
	return fmt.Errorf("%w (kcoord said: %s)", err, s.last)
}
