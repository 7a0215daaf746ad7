//go:build kafka

package gatewaytest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokers are the node ids.
var brokers = []int32{1, 2, 3}

// setup is what all tests share: starting it takes longer than they do.
type setup struct {
	home, sh, kcoord string
	controller       int
	upstream, in     map[int32]int // ports of the brokers and of kcoord in their places
	own              int           // kcoord's own port
	log              *os.File
}

var the setup

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	the = setup{
		home: os.Getenv("KAFKA_HOME"), sh: os.Getenv("KAFKA_SH"), kcoord: os.Getenv("KCOORD"),
		upstream: map[int32]int{}, in: map[int32]int{},
	}
	ports := freePorts(2 + 2*len(brokers))
	the.controller, the.own = ports[0], ports[1]
	for i, id := range brokers {
		the.upstream[id], the.in[id] = ports[2+2*i], ports[3+2*i]
	}
	defer func() {
		for _, id := range brokers {
			_ = the.kill(id)
		}
	}()
	if err := the.startBrokers(); err != nil {
		return 1, err
	}
	stop, err := the.startKcoord()
	if err != nil {
		return 1, err
	}
	defer stop()
	code = m.Run()
	if code != 0 {
		log, _ := os.ReadFile(the.log.Name())
		fmt.Fprintf(os.Stderr, "kcoord's log:\n%s", log)
	}
	return code, nil
}

// freePorts are below those that the system gives to outgoing connections, which
// would take one between the kill of a broker and its next start.
func freePorts(n int) (ports []int) {
	for p := 20000 + os.Getpid()%1000*10; len(ports) < n; p++ {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", p)); err == nil {
			l.Close()
			ports = append(ports, p)
		}
	}
	return ports
}

func (s *setup) file(id int32) string {
	return filepath.Join(s.home, fmt.Sprintf("node%d.properties", id))
}

func (s *setup) properties(id int32) string {
	roles, listeners := "broker", fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", s.upstream[id])
	if id == 1 {
		roles, listeners = "broker,controller", listeners+fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", s.controller)
	}
	return fmt.Sprintf(`process.roles=%s
node.id=%d
controller.quorum.bootstrap.servers=127.0.0.1:%d
listeners=%s
advertised.listeners=%[4]s
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=data%[2]d
broker.rack=rack%[2]d
transaction.partition.verification.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
offsets.topic.replication.factor=1
`, roles, id, s.controller, listeners)
}

// startBrokers formats and starts all. kafka.sh formats what has no folder, as a
// quorum of its own, so those of the other brokers are made before.
func (s *setup) startBrokers() error {
	var all sync.WaitGroup
	failed := make([]error, len(brokers))
	for i, id := range brokers {
		if err := os.WriteFile(s.file(id), []byte(s.properties(id)), 0o600); err != nil {
			return err
		}
		all.Go(func() {
			if id != 1 {
				if _, err := s.java("kafka.tools.StorageTool", "format", "--no-initial-controllers", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", s.file(id)); err != nil {
					failed[i] = err
					return
				}
			}
			failed[i] = s.start(id)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *setup) start(id int32) error {
	out, err := s.command(s.sh, "start", s.file(id)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("broker %d does not start: %w: %s", id, err, out)
	}
	return nil
}

// kill is with -9.
func (s *setup) kill(id int32) error {
	pid, err := os.ReadFile(strings.TrimSuffix(s.file(id), ".properties") + ".pid")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		return err
	}
	return syscall.Kill(n, syscall.SIGKILL)
}

func (s *setup) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.home
	c.Env = append(os.Environ(), "LL=error")
	return c
}

// java runs one of Kafka's own programs.
func (s *setup) java(class string, args ...string) (string, error) {
	c := s.command(s.sh, append([]string{"run", class}, args...)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s%s", class, err, out.String(), errs.String())
	}
	return out.String(), nil
}

func (s *setup) startKcoord() (stop func(), err error) {
	if s.log, err = os.Create(filepath.Join(s.home, "kcoord.log")); err != nil {
		return nil, err
	}
	var listen []string
	for _, id := range brokers {
		listen = append(listen, fmt.Sprintf("%d=127.0.0.1:%d", id, s.in[id]))
	}
	c := s.command(s.kcoord, "serve", "--listen", s.bootstrap(), "--data", filepath.Join(s.home, "kcoord"), "--log-format", "json",
		"--upstream", fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", s.upstream[1], s.upstream[2]),
		"--set", "group.initial.rebalance.delay.ms=0", "--set", "gateway.listen="+strings.Join(listen, ","))
	c.Stdout, c.Stderr = s.log, s.log
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() }, nil
}

func (s *setup) bootstrap() string { return fmt.Sprint("127.0.0.1:", s.own) }

// ours are the addresses that clients may use.
func (s *setup) ours() map[string]bool {
	all := map[string]bool{s.bootstrap(): true}
	for _, p := range s.in {
		all[fmt.Sprint("127.0.0.1:", p)] = true
	}
	return all
}

// client is franz-go, and fails the test when it connects to a broker.
func client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	ours := the.ours()
	opts = append(opts, kgo.SeedBrokers(the.bootstrap()), kgo.MetadataMinAge(250*time.Millisecond), kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !ours[addr] {
			t.Errorf("a client goes to %s, past kcoord", addr)
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// topic makes one, and waits until all know it.
func topic(t *testing.T, name string, partitions int32, replicas int16) {
	t.Helper()
	adm := kadm.NewClient(client(t))
	await(t, "topic "+name, func(ctx context.Context) error {
		if _, err := adm.CreateTopic(ctx, partitions, replicas, nil, name); err != nil && !strings.Contains(err.Error(), "TOPIC_ALREADY_EXISTS") {
			return err
		}
		ends, err := adm.ListEndOffsets(ctx, name)
		if err != nil {
			return err
		}
		return ends.Error()
	})
}

// await tries until it works.
func await(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}
