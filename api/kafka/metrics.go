package kafka

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
)

// metrics are those of the listener, named as Kafka's own are shown by the JMX
// exporter's usual rules, where Kafka has one:
//
//	kafka_network_requestmetrics_requests_total{request,version}   requests, passed on ones too
//	kafka_network_requestmetrics_errors_total{request,error}       error codes in our own answers
//	kafka_network_requestmetrics_total_time_seconds{request}       from the request's arrival to its answer's turn
//	kafka_network_requestmetrics_request_bytes_total{request}      lengths of requests
//	kafka_network_requestmetrics_response_bytes_total{request}     lengths of answers
//	kafka_server_socketserver_connections                          open connections
//	kafka_server_socketserver_connections_total                    connections accepted
//	kafka_server_socketserver_connections_refused_total            over max.connections or max.connections.per.ip
//	kcoord_listener_connections_closed_total{reason}               ended by us: malformed, too_large, unsupported, idle, upstream, stale
//	kcoord_transactions_legacy_commits_total{outcome}              transactional commits that name no member: allowed, warned, denied
//	kcoord_transactions_stale_requests_total                       refused since they came on an older connection than their producer's
type metrics struct {
	apis           map[int16]*apiMetrics
	errors         *prometheus.CounterVec
	open           prometheus.Gauge
	accepted, over prometheus.Counter
	closed         *prometheus.CounterVec
	staleRequests  prometheus.Counter
	legacy         *prometheus.CounterVec
}

// apiMetrics are one API's, looked up once so that a request looks nothing up.
type apiMetrics struct {
	name     string
	min      int16
	requests []prometheus.Counter // by version from min on; the last is of all others
	time     prometheus.Observer
	in, out  prometheus.Counter
}

func newMetrics(r prometheus.Registerer, served []api) *metrics {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	counter := func(name, what string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: what}, labels)
		r.MustRegister(v)
		return v
	}
	requests := counter("kafka_network_requestmetrics_requests_total", "Requests.", "request", "version")
	in := counter("kafka_network_requestmetrics_request_bytes_total", "Bytes of requests.", "request")
	out := counter("kafka_network_requestmetrics_response_bytes_total", "Bytes of answers.", "request")
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kafka_network_requestmetrics_total_time_seconds", Help: "Time from a request's arrival to its answer's turn.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 3, 12),
	}, []string{"request"})
	m := &metrics{
		apis:     map[int16]*apiMetrics{},
		errors:   counter("kafka_network_requestmetrics_errors_total", "Error codes in answers of the coordinator.", "request", "error"),
		open:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "kafka_server_socketserver_connections", Help: "Open connections."}),
		accepted: prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_server_socketserver_connections_total", Help: "Connections accepted."}),
		over:     prometheus.NewCounter(prometheus.CounterOpts{Name: "kafka_server_socketserver_connections_refused_total", Help: "Connections over a limit."}),
		closed:   counter("kcoord_listener_connections_closed_total", "Connections ended by us.", "reason"),
	}
	m.legacy = counter("kcoord_transactions_legacy_commits_total", "Transactional offset commits that name no member of their group.", "outcome")
	m.staleRequests = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kcoord_transactions_stale_requests_total", Help: "Requests of transactions that were over, on connections that their producers had given up.",
	})
	r.MustRegister(times, m.open, m.accepted, m.over, m.staleRequests)
	for i := range served {
		a := &served[i]
		name := apiName(a.key)
		am := &apiMetrics{name: name, min: a.min, time: times.WithLabelValues(name), in: in.WithLabelValues(name), out: out.WithLabelValues(name)}
		for v := a.min; v <= a.max; v++ {
			am.requests = append(am.requests, requests.WithLabelValues(name, strconv.Itoa(int(v))))
		}
		am.requests = append(am.requests, requests.WithLabelValues(name, "other"))
		m.apis[a.key] = am
	}
	return m
}

func (m *metrics) request(key, version int16, bytes int) {
	a := m.apis[key]
	i := int(version) - int(a.min)
	if i < 0 || i >= len(a.requests) {
		i = len(a.requests) - 1
	}
	a.requests[i].Inc()
	a.in.Add(float64(bytes))
}

func (m *metrics) response(key int16, bytes int)           { m.apis[key].out.Add(float64(bytes)) }
func (m *metrics) answered(key int16, after time.Duration) { m.apis[key].time.Observe(after.Seconds()) }

func (m *metrics) failed(key, code int16) {
	name := "UNKNOWN_SERVER_ERROR"
	if e := kerr.TypedErrorForCode(code); e != nil {
		name = e.Message
	}
	m.errors.WithLabelValues(m.apis[key].name, name).Inc()
}

func (m *metrics) connected() { m.accepted.Inc(); m.open.Inc() }
func (m *metrics) refused()   { m.over.Inc() }

func (m *metrics) disconnected(err error) {
	m.open.Dec()
	for _, r := range []struct {
		err    error
		reason string
	}{
		{errMalformed, "malformed"}, {errNegative, "malformed"}, {errTooLarge, "too_large"}, {errUnknownAPI, "unsupported"},
		{errVersion, "unsupported"}, {errIdle, "idle"}, {errUpstream, "upstream"}, {errMismatch, "upstream"},
		{errStale, "stale"}, {errRefused, "malformed"},
	} {
		if errors.Is(err, r.err) {
			m.closed.WithLabelValues(r.reason).Inc()
			return
		}
	}
}
