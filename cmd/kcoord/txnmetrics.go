package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kcoord/kcoord/coordinator"
)

// txnMetrics are those of transactions, read when they are asked for.
type txnMetrics struct {
	stats func() coordinator.TxnStats
	now   func() time.Time
}

var (
	descTxnIDs     = desc("kcoord_transactions_ids", "Transactional ids, by the state of their latest transaction.", "state")
	descTxnEnded   = desc("kcoord_transactions_ended_total", "Transactions that were decided, by how: aborted is by their producers.", "how")
	descTxnRefused = desc("kcoord_transactions_fenced_requests_total", "Requests of producers that are not the current ones.")
	descTxnExpired = desc("kcoord_transactions_expired_ids_total", "Transactional ids that nobody used for too long.")
	descTxnBad     = desc("kcoord_quarantined_transactional_ids", "Transactional ids in quarantine: their record cannot be read.")
	descMarkers    = desc("kcoord_transactions_markers_total", "Markers that were written, and those that were not taken and are sent again.", "what")
	descMarkerWait = desc("kcoord_transactions_marker_wait_seconds", "How long the oldest decided transaction has waited for its markers.")
	descUnmarked   = desc("kcoord_transactions_markers_waiting", "Decided transactions that wait for their markers.")
)

// Describe tells of all of them.
func (m *txnMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTxnIDs, descTxnEnded, descTxnRefused, descTxnExpired, descTxnBad, descMarkers, descMarkerWait, descUnmarked} {
		ch <- d
	}
}

// Collect looks at the coordinator, once a scrape.
func (m *txnMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	s := m.stats()
	for state, n := range s.Census {
		gauge(descTxnIDs, float64(n), state)
	}
	count(descTxnEnded, s.Committed, "committed")
	count(descTxnEnded, s.Aborted-s.TimedOut-s.Fenced-s.Killed, "aborted")
	count(descTxnEnded, s.TimedOut, "timeout")
	count(descTxnEnded, s.Fenced, "fenced")
	count(descTxnEnded, s.Killed, "admin")
	count(descTxnRefused, s.Refused)
	count(descTxnExpired, s.Expired)
	gauge(descTxnBad, float64(s.Quarantined))
	count(descMarkers, s.Markers.Written, "written")
	count(descMarkers, s.Markers.Retried, "retried")
	gauge(descUnmarked, float64(s.Waiting))
	waited := 0.0
	if !s.WaitingSince.IsZero() {
		waited = max(m.now().Sub(s.WaitingSince).Seconds(), 0)
	}
	gauge(descMarkerWait, waited)
}
