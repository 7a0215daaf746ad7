//go:build kafka

package kafkatest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// broker is one Apache Kafka, started by ../shared/kafka/kafka.sh ($KAFKA_SH).
type broker struct {
	t          *testing.T
	at         string // its own listener
	controller string
	properties string
	running    bool
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	if os.Getenv("KAFKA_SH") == "" {
		t.Fatal("KAFKA_SH does not say where kafka.sh is: run scripts/kafka-test.sh")
	}
	// The log and the pid lie in kafka.sh's folder under this name.
	name := fmt.Sprintf("kcoord-test-%d.properties", os.Getpid())
	b := &broker{t: t, at: freePort(t), controller: freePort(t), properties: filepath.Join(t.TempDir(), name)}
	t.Cleanup(func() {
		if b.running {
			_, _ = b.sh("stop", b.properties, "KILL")
		}
		home := os.Getenv("KAFKA_HOME")
		left, _ := filepath.Glob(filepath.Join(home, strings.TrimSuffix(name, "properties")+"*"))
		for _, f := range left {
			_ = os.Remove(f)
		}
		_ = os.RemoveAll(filepath.Join(home, b.data()))
	})
	return b
}

func (b *broker) data() string { return fmt.Sprintf("data-kcoord-test-%d", os.Getpid()) }

// sh runs kafka.sh.
func (b *broker) sh(args ...string) (string, error) {
	cmd := exec.Command(os.Getenv("KAFKA_SH"), args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kafka.sh %s: %w: %s%s", strings.Join(args, " "), err, out.String(), bad.String())
	}
	return out.String(), nil
}

// start starts it with further settings.
func (b *broker) start(advertised string, more ...string) {
	b.t.Helper()
	text := strings.Join(append([]string{
		"process.roles=broker,controller", "node.id=1",
		"controller.quorum.bootstrap.servers=" + b.controller,
		"listeners=PLAINTEXT://" + b.at + ",CONTROLLER://" + b.controller,
		"advertised.listeners=PLAINTEXT://" + advertised + ",CONTROLLER://" + b.controller,
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + b.data(),
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
	}, more...), "\n") + "\n"
	if err := os.WriteFile(b.properties, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.sh("start", b.properties); err != nil {
		b.t.Fatal(err)
	}
	b.running = true
}

func (b *broker) stop() {
	b.t.Helper()
	if _, err := b.sh("stop", b.properties); err != nil {
		b.t.Fatal(err)
	}
	b.running = false
}

// tool runs Kafka's own kafka-consumer-groups.
func (b *broker) tool(at string, args ...string) string {
	b.t.Helper()
	out, err := b.sh(append([]string{"run", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", at}, args...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}
