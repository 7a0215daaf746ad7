//go:build kafka

package kafkatest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestJavaExactlyOnce: the Java client's sendOffsetsToTransaction, in several versions,
// through kcoord in front of Kafka, while kcoord is killed. Each record is in the
// output once, and Kafka's own tool tells of the transactions.
func TestJavaExactlyOnce(t *testing.T) {
	b := newBroker(t)
	o := &operator{t: t, dir: t.TempDir(), env: os.Environ()}
	o.build()
	front := freePort(t)
	b.start(front, "transaction.partition.verification.enable=false", "transaction.abort.timed.out.transaction.cleanup.interval.ms=500")
	serve := func() *process {
		return o.start("serve", "--listen", front, "--upstream", b.at, "--data", filepath.Join(o.dir, "data"), "--properties", b.properties)
	}
	kcoord := serve()
	r := &reader{t: t, at: front}
	r.createTopic()
	client := r.client()
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "invoices"); err != nil {
		t.Fatal(err)
	}
	for _, version := range javaVersions(t) {
		r.produce(60)
		loop := startLoop(t, version, front)
		loop.commits(3)
		kcoord.kill()
		kcoord = serve()
		loop.commits(3)
		r.produce(60)
		ends := r.committed(admin)
		loop.kill()
		r.exactly(admin, ends)
		t.Logf("kafka-clients %s: records end at %v", version, ends)
	}

	o.says(b.transactions(front, "list"), `(?m)^loop\s+1\s+\d+\s+(CompleteCommit|CompleteAbort|Empty)`)
	o.says(b.transactions(front, "describe", "--transactional-id", "loop"), `(?m)^1\s+loop\s+\d+\s+\d+\s+(CompleteCommit|CompleteAbort|Empty)\s+20000`)
	out := b.transactions(front, "find-hanging", "--broker-id", "1")
	o.says(out, `^Topic\s+Partition\s+ProducerId\s+ProducerEpoch\s+CoordinatorEpoch\s+StartOffset\s+LastTimestamp\s+Duration\(min\)\s*$`)
	kcoord.stop()
}

// javaVersions are those of kafka-clients that are there.
func javaVersions(t *testing.T) (versions []string) {
	t.Helper()
	for _, v := range []string{"4.4.0", "3.9.1", "2.8.2"} {
		if jars, _ := filepath.Glob(filepath.Join(os.Getenv("KAFKA_HOME"), "libs-"+v, "kafka-clients-*.jar")); len(jars) > 0 {
			versions = append(versions, v)
		} else {
			t.Logf("kafka-clients %s is not there", v)
		}
	}
	return versions
}

// transactions runs Kafka's own kafka-transactions.
func (b *broker) transactions(at string, args ...string) string {
	b.t.Helper()
	out, err := b.sh(append([]string{"run", "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", at}, args...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // what it ended by is of no interest
	<-p.end
}

// loop is testdata/Loop.java at work.
type loop struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

func startLoop(t *testing.T, version, at string) *loop {
	t.Helper()
	libs := filepath.Join(os.Getenv("KAFKA_HOME"), "libs-"+version, "*")
	l := &loop{t, exec.Command("java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", libs,
		filepath.Join("testdata", "Loop.java"), at), make(chan string, 1000)}
	var log bytes.Buffer
	l.cmd.Stderr = &log
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.kill()
		if t.Failed() {
			t.Logf("what the loop said:\n%s", log.String())
		}
	})
	go func() {
		defer close(l.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.lines <- lines.Text()
		}
	}()
	return l
}

// commits waits for as many transactions.
func (l *loop) commits(n int) {
	l.t.Helper()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for n > 0 {
		select {
		case line, open := <-l.lines:
			if !open {
				l.t.Fatal("the loop has ended")
			}
			if strings.HasPrefix(line, "committed") {
				n--
			} else {
				l.t.Log(line)
			}
		case <-late.C:
			l.t.Fatalf("%d transactions do not come", n)
		}
	}
}

// kill ends it in the middle of whatever it does.
func (l *loop) kill() {
	if l.cmd.ProcessState != nil {
		return
	}
	_ = l.cmd.Process.Kill() // it may have ended
	for range l.lines {
	}
	_ = l.cmd.Wait()
}

// committed waits until the loop has committed all there is, and returns where that ends.
func (r *reader) committed(admin *kadm.Client) (ends map[int32]int64) {
	r.t.Helper()
	r.until(func(ctx context.Context) error {
		listed, err := admin.ListEndOffsets(ctx, "records")
		if err != nil {
			return err
		}
		at, err := admin.FetchOffsets(ctx, "loop")
		ends = map[int32]int64{}
		for p, end := range listed["records"] {
			ends[p] = end.Offset
			if o, _ := at.Lookup("records", p); err == nil && o.At != end.Offset {
				err = fmt.Errorf("partition %d: %d of %d", p, o.At, end.Offset)
			}
		}
		return err
	})
	return ends
}

// until tries again, since what it waits for happens in other processes.
func (r *reader) until(holds func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			r.t.Fatal(err)
		case <-tick.C:
		}
	}
}

// exactly reads the output with read_committed: it has each record once.
func (r *reader) exactly(admin *kadm.Client, ends map[int32]int64) {
	r.t.Helper()
	times := r.readCommitted("invoices", r.ended(admin, "invoices"))
	var records int
	for p, end := range ends {
		for at := range end {
			records++
			if n := times[fmt.Sprintf("%d/%d", p, at)]; n != 1 {
				r.t.Errorf("record %d of partition %d is in the output %d times", at, p, n)
			}
		}
	}
	if len(times) != records {
		r.t.Errorf("the output has %d records of %d", len(times), records)
	}
}

// ended waits until no transaction is open in a topic, and returns where it ends then.
func (r *reader) ended(admin *kadm.Client, topic string) map[int32]int64 {
	r.t.Helper()
	to := map[int32]int64{}
	r.until(func(ctx context.Context) error {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			return err
		}
		all, err := admin.ListEndOffsets(ctx, topic)
		for p, end := range all[topic] {
			to[p] = end.Offset
			if s, _ := stable.Lookup(topic, p); err == nil && s.Offset != end.Offset {
				err = fmt.Errorf("partition %d is stable to %d of %d", p, s.Offset, end.Offset)
			}
		}
		return err
	})
	return to
}

// readCommitted reads a topic's committed records up to offsets, and counts each value.
func (r *reader) readCommitted(topic string, to map[int32]int64) map[string]int {
	r.t.Helper()
	from, open := map[int32]kgo.Offset{}, map[int32]int64{}
	for p, end := range to {
		if end > 0 {
			from[p], open[p] = kgo.NewOffset().At(0), end
		}
	}
	c := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	defer c.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	times := map[string]int{}
	for len(open) > 0 {
		c.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
			if !rec.Attrs.IsControl() {
				times[string(rec.Value)]++
			}
			if rec.Offset+1 >= open[rec.Partition] {
				delete(open, rec.Partition)
			}
		})
		if ctx.Err() != nil {
			r.t.Fatalf("%s cannot be read to its ends %v", topic, open)
		}
	}
	return times
}
