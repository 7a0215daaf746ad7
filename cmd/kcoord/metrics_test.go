package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kcoord/kcoord/api/kafka"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/coordinator/txn/marker"
	"github.com/kcoord/kcoord/storage/pebblelog"
)

var described = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// served are all metrics of kcoord's own, as `name|labels|help`.
func served(t *testing.T) []string {
	t.Helper()
	all := &recording{}
	k := kafka.New(kafka.Options{Metrics: all})
	t.Cleanup(func() { _ = k.Shutdown(t.Context()) })
	all.MustRegister(&coordinatorMetrics{
		func() coordinator.Stats { return coordinator.Stats{} }, func() pebblelog.Stats { return pebblelog.Stats{} },
	}, &txnMetrics{})
	var lines []string
	for _, c := range all.collectors {
		ch := make(chan *prometheus.Desc, 100)
		c.Describe(ch)
		close(ch)
		for d := range ch {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("%s is not what it was", d)
			}
			lines = append(lines, m[1]+"|"+m[3]+"|"+m[2])
		}
	}
	slices.Sort(lines)
	return lines
}

// recording is a registry that remembers what was registered.
type recording struct {
	prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recording) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}

func (r *recording) MustRegister(cs ...prometheus.Collector) {
	r.collectors = append(r.collectors, cs...)
}

// TestMetricsAreDocumented holds docs/metrics.md to what is served; -update writes the
// rows anew and keeps what they say of Kafka's.
func TestMetricsAreDocumented(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "metrics.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, kafkas := "", map[string]string{}
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") {
			head += line
			continue
		}
		kafkas[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[3])
	}
	want := head
	for _, line := range served(t) {
		cells := strings.Split(line, "|")
		labels := ""
		for l := range strings.SplitSeq(cells[1], ",") {
			if l != "" {
				labels += fmt.Sprintf(" `%s`", l)
			}
		}
		want += fmt.Sprintf("| `%s` |%s | %s | %s |\n", cells[0], labels, kafkas[cells[0]], cells[2])
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("docs/metrics.md is out of date (go test ./cmd/kcoord -run Metrics -update); want\n%s", want)
	}
}

// TestMetricsAreCollected: what is described is what comes, and Prometheus takes it.
func TestMetricsAreCollected(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&coordinatorMetrics{
		func() coordinator.Stats {
			return coordinator.Stats{Groups: map[group.Kind]int{{Protocol: "classic", State: "Empty"}: 2}}
		},
		func() pebblelog.Stats {
			return pebblelog.Stats{Flush: pebblelog.Histogram{Bounds: []float64{1, 2}, Counts: []uint64{1, 2, 3}, Sum: 9}}
		},
	})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		got[f.GetName()] = f.String()
	}
	if len(got) != 21 {
		t.Errorf("%d families", len(got))
	}
	flush := got["kafka_coordinator_group_batch_flush_time_seconds"]
	for _, want := range []string{"sample_count:6", "cumulative_count:1", "cumulative_count:3"} {
		if !strings.Contains(flush, want) {
			t.Errorf("%s is not in %s", want, flush)
		}
	}
}

// TestTxnMetricsAreCollected: of aborts, each is counted under its own reason alone.
func TestTxnMetricsAreCollected(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	now := time.Unix(1000, 0)
	r.MustRegister(&txnMetrics{func() coordinator.TxnStats {
		return coordinator.TxnStats{
			Counters: txn.Counters{Committed: 5, Aborted: 10, TimedOut: 1, Fenced: 2, Killed: 3}, Census: txn.Census{"Ongoing": 4},
			Markers: marker.Counters{Written: 7, Retried: 8}, Waiting: 1, WaitingSince: now.Add(-2 * time.Second),
		}
	}, func() time.Time { return now }})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"kcoord_transactions_ended_total committed": 5, "kcoord_transactions_ended_total aborted": 4, "kcoord_transactions_ended_total timeout": 1,
		"kcoord_transactions_ended_total fenced": 2, "kcoord_transactions_ended_total admin": 3, "kcoord_transactions_ids Ongoing": 4,
		"kcoord_transactions_markers_total written": 7, "kcoord_transactions_markers_total retried": 8,
		"kcoord_transactions_marker_wait_seconds": 2, "kcoord_transactions_markers_waiting": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
}
