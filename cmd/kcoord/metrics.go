package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/storage/pebblelog"
)

// coordinatorMetrics are those of the coordinator and its log, read when they are
// asked for. Where Kafka has a metric, the name is its own in the shape that the JMX
// exporter's usual rules give it; docs/metrics.md has all of them.
type coordinatorMetrics struct {
	stats func() coordinator.Stats
	log   func() pebblelog.Stats
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descGroups    = desc("kafka_coordinator_group_groups", "Groups, by protocol and state.", "protocol", "state")
	descShards    = desc("kafka_coordinator_group_num_partitions", "Shards that are open.")
	descLoad      = desc("kafka_coordinator_group_partition_load_time_seconds", "Time that opening a shard took.")
	descLoadMax   = desc("kafka_coordinator_group_partition_load_time_max_seconds", "The longest of these times.")
	descCommits   = desc("kafka_coordinator_group_offset_commits_total", "Offsets committed.")
	descExpired   = desc("kafka_coordinator_group_offset_expirations_total", "Offsets that were past their retention.")
	descDeleted   = desc("kafka_coordinator_group_offset_deletions_total", "Offsets deleted when asked to, or with their group or topic.")
	descRebalance = desc("kafka_coordinator_group_completed_rebalances_total", "Generations of classic groups that got their assignments.")
	descFlush     = desc("kafka_coordinator_group_batch_flush_time_seconds", "Time to write and sync a commit of all shards.")
	descAppend    = desc("kafka_coordinator_group_append_time_seconds", "Time from a shard's first record of a commit until it was durable.")
	descBatch     = desc("kafka_coordinator_group_batch_size_bytes", "Bytes of a commit of all shards.")
	descLogSize   = desc("kafka_log_size_bytes", "Bytes of the data folder's files.")

	descEvicted    = desc("kcoord_group_evicted_members_total", "Members thrown out: silent, late to join or to sync.")
	descGroupsGone = desc("kcoord_group_removed_groups_total", "Groups that are no more.", "reason")
	descQuarantine = desc("kcoord_quarantined_groups", "Groups in quarantine: a record of theirs cannot be read.")
	descResident   = desc("kcoord_group_resident_entries", "Groups and offsets in memory.")
	descWaiting    = desc("kcoord_group_waiting_requests", "Requests that wait for the disk, or for members and timers.", "for")
	descTail       = desc("kcoord_log_tail_bytes", "Bytes of the log that the key table does not have yet.")
	descWork       = desc("kcoord_log_background_runs_total", "Folds of the log into the key table, and cleanings.", "work")
	descWorkBytes  = desc("kcoord_log_background_bytes_total", "Bytes that they folded in, or left.", "work")
	descWorkTime   = desc("kcoord_log_background_seconds_total", "Time that they took.", "work")
)

// Describe tells of all of them.
func (m *coordinatorMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descGroups, descShards, descLoad, descLoadMax, descCommits, descExpired, descDeleted, descRebalance, descFlush, descAppend, descBatch,
		descLogSize, descEvicted, descGroupsGone, descQuarantine, descResident, descWaiting, descTail, descWork, descWorkBytes, descWorkTime,
	} {
		ch <- d
	}
}

// Collect looks at the coordinator and the log, once a scrape.
func (m *coordinatorMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	s := m.stats()
	for k, n := range s.Groups {
		gauge(descGroups, float64(n), k.Protocol, k.State)
	}
	gauge(descShards, float64(s.Open))
	ch <- prometheus.MustNewConstSummary(descLoad, uint64(s.Loads.Count), s.Loads.Sum.Seconds(), nil)
	gauge(descLoadMax, s.Loads.Max.Seconds())
	count(descCommits, s.Counters.OffsetCommits)
	count(descExpired, s.Counters.OffsetsExpired)
	count(descDeleted, s.Counters.OffsetsDeleted)
	count(descRebalance, s.Counters.Rebalances)
	count(descEvicted, s.Counters.Evicted)
	count(descGroupsGone, s.Counters.GroupsExpired, "expired")
	count(descGroupsGone, s.Counters.GroupsDeleted, "deleted")
	gauge(descQuarantine, float64(s.Counters.Quarantined))
	gauge(descResident, float64(s.Resident))
	gauge(descWaiting, float64(s.Gated), "disk")
	gauge(descWaiting, float64(s.Parked), "members")

	l := m.log()
	ch <- histogram(descFlush, l.Flush)
	ch <- histogram(descAppend, l.Append)
	ch <- histogram(descBatch, l.Batch)
	gauge(descTail, float64(l.Tail))
	gauge(descLogSize, float64(l.Disk))
	for name, w := range map[string]pebblelog.Work{"fold": l.Folds, "clean": l.Cleans} {
		count(descWork, w.Count, name)
		count(descWorkBytes, w.Bytes, name)
		ch <- prometheus.MustNewConstMetric(descWorkTime, prometheus.CounterValue, w.Time.Seconds(), name)
	}
}

// histogram turns counts of each bucket into those of all up to it.
func histogram(d *prometheus.Desc, h pebblelog.Histogram) prometheus.Metric {
	upTo, n := map[float64]uint64{}, uint64(0)
	for i, c := range h.Counts {
		n += c
		if i < len(h.Bounds) {
			upTo[h.Bounds[i]] = n
		}
	}
	return prometheus.MustNewConstHistogram(d, n, h.Sum, upTo)
}
