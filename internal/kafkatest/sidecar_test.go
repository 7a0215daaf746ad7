//go:build kafka

package kafkatest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestThereAndBack goes the way of docs/sidecar.md: from a plain Kafka to Kafka with
// kcoord and back. A consumer group reads all the way; what it has committed by the one
// coordinator it goes on from by the other, so it reads every record once.
func TestThereAndBack(t *testing.T) {
	b := newBroker(t)
	o := &operator{t: t, dir: t.TempDir()}
	o.build()
	front, adminAt, httpAt := freePort(t), freePort(t), freePort(t)
	o.env = append(os.Environ(), "KCOORD_ADMIN="+adminAt)

	// A plain Kafka, with a group that reads.
	b.start(b.at)
	r := &reader{t: t, at: b.at}
	r.createTopic()
	r.produce(10)
	r.read(10)

	// 1. What would not work.
	said := o.run(0, "check", "--upstream", b.at, "--listen", front, "--data", o.dir+"/data")
	o.says(said, `(?m)^WARN  The broker advertises another address than kcoord's \(1 at `+b.at+`\)`)
	o.says(said, `(?m)^WARN  transaction.partition.verification.enable is true`)
	o.says(said, `(?m)^OK    This connection may write transaction markers`)
	o.says(said, `(?m)^OK    Nobody is in one of the broker's groups \(1\)`)

	// 2. kcoord beside it: nobody comes to it yet.
	kcoord := o.start("serve", "--listen", front, "--upstream", b.at, "--data", o.dir+"/data", "--properties", b.properties,
		"--admin", adminAt, "--http", httpAt)
	r.produce(5)
	r.read(5)

	// 3. The offsets, a first time: a plan, then the copy.
	o.says(o.run(0, "offsets", "import", "--from", b.at), `Nothing was copied. Copy \d+ offsets? of 1 group with --yes.`)
	o.says(o.run(0, "offsets", "import", "--from", b.at, "--yes"), `Copied \d+ offsets? of 1 group.`)
	r.produce(5)
	r.read(5) // still by the broker's coordinator

	// 4. Consumers have stopped: the rest is copied, and the broker told to give kcoord's address as its own.
	o.says(o.run(0, "offsets", "import", "--from", b.at, "--yes"), `Copied \d+ offsets? of 1 group.`)
	b.stop()
	b.start(front, "transaction.partition.verification.enable=false")
	o.says(o.run(0, "offsets", "import", "--from", b.at, "--yes"), `Nothing is left to copy.`)
	said = o.run(1, "check", "--upstream", b.at, "--listen", front) // its port is kcoord's own now
	o.says(said, `OK    Broker 1 advertises kcoord's address`)
	o.says(said, `OK    transaction.partition.verification.enable is false`)

	// 5. Clients go on, by the address that they always had.
	r.produce(7)
	r.read(7)
	o.says(o.run(0, "groups", "describe", group), `(?m)^`+group+`: Empty`)
	o.says(b.tool(front, "--describe", "--group", group), group+` +records +0 `)
	o.says(b.tool(b.at, "--list"), group)
	if n := o.committed(); n != 27 {
		t.Errorf("kcoord has offsets of %d records, 27 were read", n)
	}

	// And back: the offsets return, the broker gives its own address again, kcoord goes.
	o.says(o.run(0, "offsets", "export", "--to", b.at), `Nothing was copied. Copy \d+ offsets? of 1 group with --yes.`)
	o.says(o.run(0, "offsets", "export", "--to", b.at, "--yes"), `Copied \d+ offsets? of 1 group.`)
	b.stop()
	b.start(b.at)
	kcoord.stop()
	r.produce(3)
	r.read(3)
}

const group = "reading"

// reader produces records and reads them as a group. Each read is a consumer that
// comes, reads what is new, commits and leaves.
type reader struct {
	t    *testing.T
	at   string
	next int
	seen map[string]bool
}

func (r *reader) client(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(r.at))...)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *reader) createTopic() {
	r.t.Helper()
	c := r.client()
	defer c.Close()
	if _, err := kadm.NewClient(c).CreateTopic(r.t.Context(), 3, 1, nil, "records"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) produce(n int) {
	r.t.Helper()
	// To each partition in turn: a sticky producer could leave one without records, and the group without an offset in it.
	c := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer c.Close()
	for range n {
		record := &kgo.Record{Topic: "records", Partition: int32(r.next % 3), Value: fmt.Append(nil, r.next)} //nolint:gosec // 0, 1 or 2
		if err := c.ProduceSync(r.t.Context(), record).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
		r.next++
	}
}

func (r *reader) read(n int) {
	r.t.Helper()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	c := r.client(kgo.ConsumerGroup(group), kgo.ConsumeTopics("records"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for n > 0 {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			r.t.Fatalf("%d records are missing: %v", n, err)
		}
		fetched.EachRecord(func(rec *kgo.Record) {
			n--
			if r.seen[string(rec.Value)] {
				r.t.Errorf("record %s is read twice", rec.Value)
			}
			r.seen[string(rec.Value)] = true
		})
	}
	if n < 0 {
		r.t.Errorf("%d records too many", -n)
	}
	if err := c.CommitUncommittedOffsets(ctx); err != nil {
		r.t.Fatal(err)
	}
	if err := c.LeaveGroupContext(ctx); err != nil {
		r.t.Fatal(err)
	}
	c.Close()
}

// operator types kcoord's commands.
type operator struct {
	t   *testing.T
	dir string
	env []string

	// Of newSidecar: where the admin API is, and how kcoord runs.
	admin  string
	serve  []string
	kcoord *process
}

func (o *operator) exe() string { return filepath.Join(o.dir, "kcoord") }

func (o *operator) build() {
	o.t.Helper()
	if out, err := exec.Command("go", "build", "-o", o.exe(), "github.com/kcoord/kcoord/cmd/kcoord").CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
}

// run runs a command, which has to end with an exit code.
func (o *operator) run(code int, args ...string) string {
	o.t.Helper()
	cmd := exec.Command(o.exe(), args...)
	cmd.Env = o.env
	out, err := cmd.CombinedOutput()
	got := 0
	if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
		got = ee.ExitCode()
	} else if err != nil {
		o.t.Fatal(err)
	}
	if got != code {
		o.t.Fatalf("kcoord %s: exit code %d\n%s", strings.Join(args, " "), got, out)
	}
	return string(out)
}

func (o *operator) says(text, pattern string) {
	o.t.Helper()
	text = strings.ReplaceAll(text, "\n      ", " ") // of lines that were wrapped
	if !regexp.MustCompile(pattern).MatchString(text) {
		o.t.Errorf("%s is not in\n%s", pattern, text)
	}
}

// committed is the sum of the group's offsets in kcoord.
func (o *operator) committed() (sum int) {
	o.t.Helper()
	var listed struct {
		Offsets []struct {
			Offset int `json:",string"`
		}
	}
	if err := json.Unmarshal([]byte(o.run(0, "offsets", "list", group, "-o", "json")), &listed); err != nil {
		o.t.Fatal(err)
	}
	for _, p := range listed.Offsets {
		sum += p.Offset
	}
	return sum
}

// process is a running kcoord.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	end chan error
}

func (o *operator) start(args ...string) *process {
	o.t.Helper()
	p := &process{o.t, exec.Command(o.exe(), append(args, "--log-format", "json")...), make(chan error, 1)}
	out, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	lines, log := bufio.NewScanner(out), ""
	for !strings.Contains(log, "kcoord has started") {
		if !lines.Scan() {
			o.t.Fatalf("kcoord did not start:\n%s", log)
		}
		log += lines.Text() + "\n"
	}
	go func() {
		for lines.Scan() {
		}
		p.end <- p.cmd.Wait()
	}()
	return p
}

func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.end; err != nil {
		p.t.Error(err)
	}
}
