package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"xdspub/serve/cache"
	"xdspub/serve/listen"
	"xdspub/serve/memory"
	"xdspub/xds"
)

// metrics are the Prometheus metrics of a Server. No label is a text from a client, such as a node id, so
// that clients can't multiply the series.
type metrics struct {
	registry                      *prometheus.Registry
	requests, rejected, responses *prometheus.CounterVec // by API, such as CDS
	ended                         *prometheus.CounterVec // streams, by code
	refused                       *prometheus.CounterVec // refusals of memory, by level
	published                     prometheus.Gauge
	pushes                        prometheus.Histogram
}

func newMetrics() *metrics {
	byType := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type"})
	}
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		requests:  byType("xdspub_requests_total", "Discovery requests of clients, including ACKs and NACKs."),
		rejected:  byType("xdspub_rejections_total", "Responses that a client rejected (NACK)."),
		responses: byType("xdspub_responses_total", "Discovery responses sent to clients."),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_streams_ended_total", Help: "gRPC streams that have ended.",
		}, []string{"code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_client_memory_refusals_total",
			Help: "Refusals of memory to clients, by the limit that was reached: " +
				"all clients, those without a certificate (anonymous), those with one (known), a client, a connection or a stream.",
		}, []string{"of"}),
		published: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "xdspub_snapshot_time_seconds", Help: "When the served snapshot was published, in seconds since 1970.",
		}),
		pushes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "xdspub_publish_seconds", Help: "Time to pass a new snapshot to all streams, including the wait for --ack-quorum.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	m.registry.MustRegister(m.requests, m.rejected, m.responses, m.ended, m.refused, m.published, m.pushes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch registers the metrics whose values are computed on each scrape.
func (m *metrics) watch(c *cache.Cache, f *front, s *sessions, gate *listen.Gate, budget *memory.Budget, keys *listen.Keys) {
	m.registry.MustRegister(gapCollector{c}, sourceCollector{f})
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("xdspub_connections", "Connections of clients.", func() float64 { return float64(gate.Open()) })
	gauge("xdspub_client_memory_bytes", "Memory that the server holds for clients, in bytes.", func() float64 { return float64(budget.Held()) })
	gauge("xdspub_client_memory_limit_bytes", "Limit of xdspub_client_memory_bytes (--max-client-memory).", func() float64 { return float64(budget.Limit()) })
	gauge("xdspub_streams", "gRPC streams of clients.", func() float64 { return float64(s.open.Load()) })
	if keys != nil {
		gauge("xdspub_certificate_expiry_seconds", "When the certificate of the server expires, in seconds since 1970.", func() float64 {
			return float64(keys.Certificate().Until.Unix())
		})
	}
}

// gapCollector collects the number of clients whose parameters select no resource of a type.
type gapCollector struct{ cache *cache.Cache }

var gapDesc = prometheus.NewDesc("xdspub_clients_without_variant",
	"Clients whose dynamic parameters select no resource of the type, although the snapshot has such resources.", []string{"type"}, nil)

// Describe describes the series.
func (gapCollector) Describe(to chan<- *prometheus.Desc) { to <- gapDesc }

// Collect collects the values.
func (g gapCollector) Collect(to chan<- prometheus.Metric) {
	for api, n := range g.cache.Gaps() {
		to <- prometheus.MustNewConstMetric(gapDesc, prometheus.GaugeValue, float64(n), api)
	}
}

// sourceCollector collects the state of the source tree.
type sourceCollector struct{ front *front }

var (
	validDesc = prometheus.NewDesc("xdspub_source_valid",
		"1 if the source tree, as read last, is served; 0 if the tree is invalid or held, or can't be read or served.", nil, nil)
	errorsDesc = prometheus.NewDesc("xdspub_source_errors", "Errors that prevent serving the source tree.", nil, nil)
	infoDesc   = prometheus.NewDesc("xdspub_snapshot_info",
		"1, with the id of the served snapshot and the git commit of the source tree, as read last.",
		[]string{"snapshot", "revision"}, nil)
	successDesc = prometheus.NewDesc("xdspub_last_success_time_seconds",
		"When the source tree was last found valid and served, in seconds since 1970.", nil, nil)
)

// Describe describes the series.
func (sourceCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{validDesc, errorsDesc, infoDesc, successDesc} {
		to <- d
	}
}

// Collect collects the values.
func (c sourceCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	w, valid, errors := c.front.watch.Load(), 0.0, 0
	switch {
	case w.Refused != nil:
		errors = w.Refused.Errors
	case w.Failed == "" && w.Snapshot != "":
		valid = 1
	}
	gauge(validDesc, valid)
	gauge(errorsDesc, float64(errors))
	if w.Snapshot != "" {
		gauge(infoDesc, 1, w.Snapshot, w.Revision)
	}
	if at := c.front.succeeded.Load(); at != nil {
		gauge(successDesc, float64(at.Unix()))
	}
}

// asked counts a request, and a NACK if refused is not nil.
func (m *metrics) asked(typeURL string, refused *rpcstatus.Status) {
	m.requests.WithLabelValues(label(typeURL)).Inc()
	if refused != nil {
		m.rejected.WithLabelValues(label(typeURL)).Inc()
	}
}

// restMetrics counts the requests and responses of the REST endpoint.
type restMetrics struct{ *metrics }

// Asked counts a request.
func (m restMetrics) Asked(t *xds.Type) { m.requests.WithLabelValues(t.API).Inc() }

// Answered counts a response.
func (m restMetrics) Answered(t *xds.Type) { m.responses.WithLabelValues(t.API).Inc() }

// Rejected counts a response that a client rejects.
func (m restMetrics) Rejected(t *xds.Type) { m.rejected.WithLabelValues(t.API).Inc() }

// label returns the API of a type, such as CDS, as a label; "unknown" for an unknown type.
func label(typeURL string) string {
	if t := xds.TypeOfURL(typeURL); t != nil {
		return t.API
	}
	return "unknown"
}
