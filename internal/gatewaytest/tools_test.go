//go:build kafka

package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	groupTool   = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	offsetTool  = "org.apache.kafka.tools.GetOffsetShell"
	versionTool = "org.apache.kafka.tools.BrokerApiVersionsCommand"
	consoleTool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	clusterTool = "org.apache.kafka.tools.ClusterTool"
)

// tool runs one of Kafka's command line tools against kcoord's own port.
func tool(t *testing.T, class string, args ...string) string {
	t.Helper()
	out, err := the.java(class, append(args, "--bootstrap-server", the.bootstrap())...)
	if err != nil {
		t.Fatal(err)
	}
	for id, p := range the.upstream {
		if strings.Contains(out, fmt.Sprint(":", p)) {
			t.Errorf("%s shows the address of broker %d:\n%s", class, id, out)
		}
	}
	return out
}

func has(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(out) {
			t.Errorf("no %q in:\n%s", p, out)
		}
	}
}

func produce(t *testing.T, topic string, n int) {
	t.Helper()
	cl := client(t, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	for i := range n {
		cl.Produce(context.Background(), kgo.StringRecord(fmt.Sprint("record ", i)), func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Kafka's own tools, unmodified, see three brokers and the groups of kcoord.
func TestJavaTools(t *testing.T) {
	topic(t, "tools", 3, 3)
	produce(t, "tools", 300)

	versions := tool(t, versionTool)
	for _, id := range brokers {
		has(t, versions, fmt.Sprintf(`(?m)^127\.0\.0\.1:%d \(id: %d rack: rack%d .*\) -> \(`, the.in[id], id, id))
	}
	has(t, versions, `OffsetCommit\(8\): 2 to 10`)
	has(t, tool(t, clusterTool, "list-endpoints"), fmt.Sprintf(`2\s+127\.0\.0\.1\s+%d\s+rack2`, the.in[2]))
	has(t, tool(t, offsetTool, "--topic", "tools"), `tools:0:100`, `tools:1:100`, `tools:2:100`)

	out := tool(t, consoleTool, "--topic", "tools", "--group", "java", "--from-beginning", "--max-messages", "300", "--timeout-ms", "60000")
	if n := strings.Count(out, "record "); n != 300 {
		t.Errorf("the Java consumer read %d records", n)
	}
	has(t, tool(t, groupTool, "--list"), `(?m)^java$`)
	has(t, tool(t, groupTool, "--describe", "--group", "java"), `java\s+tools\s+0\s+100\s+100\s+0`)
	has(t, tool(t, groupTool, "--reset-offsets", "--group", "java", "--topic", "tools:1", "--to-offset", "40", "--execute"), `java\s+tools\s+1\s+40`)
	has(t, tool(t, groupTool, "--describe", "--group", "java"), `java\s+tools\s+1\s+40\s+100\s+60`)
	has(t, tool(t, groupTool, "--delete-offsets", "--group", "java", "--topic", "tools:0"), `tools\s+0\s+Successful`)
	if out := tool(t, groupTool, "--describe", "--group", "java"); regexp.MustCompile(`tools\s+0\s+100\s`).MatchString(out) {
		t.Errorf("the offset is still there:\n%s", out)
	}
	has(t, tool(t, groupTool, "--delete", "--group", "java"), `[Dd]eletion of requested consumer groups \('java'\) was successful`)
	if out := tool(t, groupTool, "--list"); regexp.MustCompile(`(?m)^java$`).MatchString(out) {
		t.Errorf("the group is still there:\n%s", out)
	}
}

// Members and the state of a Java group at work, and what is refused meanwhile.
func TestJavaGroupAtWork(t *testing.T) {
	topic(t, "work", 3, 3)
	produce(t, "work", 30)
	c := the.command(the.sh, "run", consoleTool, "--bootstrap-server", the.bootstrap(), "--topic", "work", "--group", "atwork", "--from-beginning")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	stable := regexp.MustCompile(`atwork\s+127\.0\.0\.1:(\d+)\s+\(\d\)\s+range\s+Stable\s+1`)
	await(t, "a stable group", func(context.Context) error {
		if out := tool(t, groupTool, "--describe", "--group", "atwork", "--state"); !stable.MatchString(out) {
			return errors.New(out)
		}
		return nil
	})
	has(t, tool(t, groupTool, "--describe", "--group", "atwork", "--members", "--verbose"), `atwork\s+console-consumer-\S+\s+/127\.0\.0\.1\s+console-consumer\s+3\s+.*work:0,1,2`)
	has(t, tool(t, groupTool, "--reset-offsets", "--group", "atwork", "--topic", "work", "--to-earliest", "--execute"), `Assignments can only be reset if the group 'atwork' is inactive`)
}
