package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"xdspub/internal/crash"
	"xdspub/xds"
)

// metrics are the Prometheus metrics of a Server. No label is a text from a client, such as a node id, so
// that clients can't multiply the series.
type metrics struct {
	registry                      *prometheus.Registry
	requests, rejected, responses *prometheus.CounterVec // by API, such as CDS
	bytes                         *prometheus.CounterVec // of responses, by API
	ended                         *prometheus.CounterVec // streams, by code
	refused                       *prometheus.CounterVec // refusals of memory, by level
	pushes                        prometheus.Histogram
}

// newMetrics returns metrics in a registry; nil means a registry that nobody reads.
func newMetrics(registry *prometheus.Registry) *metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	byType := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type"})
	}
	m := &metrics{
		registry:  registry,
		requests:  byType("xdspub_requests_total", "Discovery requests of clients, including ACKs and NACKs."),
		rejected:  byType("xdspub_rejections_total", "Responses that a client rejected (NACK)."),
		responses: byType("xdspub_responses_total", "Discovery responses sent to clients."),
		bytes:     byType("xdspub_response_bytes_total", "Bytes of the discovery responses sent to clients, before TLS."),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_streams_ended_total", Help: "gRPC streams that have ended.",
		}, []string{"code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_client_memory_refusals_total",
			Help: "Refusals of memory to clients, by the limit that was reached: " +
				"all clients, those without a certificate (anonymous), those with one (known), a client, a connection or a stream.",
		}, []string{"of"}),
		pushes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "xdspub_publish_seconds", Help: "Time to pass a new snapshot to all streams, including the wait for --ack-quorum.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	for _, t := range xds.Types { // a counter that begins at 1 would hide its first event from increase()
		for _, counter := range []*prometheus.CounterVec{m.requests, m.rejected, m.responses, m.bytes} {
			counter.WithLabelValues(t.API)
		}
	}
	m.registry.MustRegister(m.requests, m.rejected, m.responses, m.bytes, m.ended, m.refused, m.pushes)
	return m
}

// watch registers the metrics whose values are computed on each scrape.
func (m *metrics) watch(all *aggregates, s *sessions, w *web) {
	m.registry.MustRegister(gapCollector{all})
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("xdspub_connections", "Connections of clients.", func() float64 { return float64(w.gate.Open()) })
	gauge("xdspub_client_memory_bytes", "Memory that the server holds for clients, in bytes.", func() float64 { return float64(w.budget.Held()) })
	gauge("xdspub_client_memory_limit_bytes", "Limit of xdspub_client_memory_bytes (--max-client-memory).", func() float64 { return float64(w.budget.Limit()) })
	gauge("xdspub_streams", "gRPC streams of clients.", func() float64 { return float64(s.open.Load()) })
	if len(all.options.AggregateBy) > 0 {
		gauge("xdspub_aggregates", "Aggregates of clients with equal node fields (--aggregate-by), without the Aggregate of the node of the server.",
			func() float64 { return float64(len(all.others())) })
		gauge("xdspub_aggregates_limit", "Limit of xdspub_aggregates (--limit aggregates).", func() float64 { return float64(w.limits.Aggregates) })
	}
	watchCertificate(m.registry, w)
}

// watchCertificate registers the metric of the certificate of --tls-cert, if there is one.
func watchCertificate(registry *prometheus.Registry, w *web) {
	if w.keys == nil {
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "xdspub_certificate_expiry_seconds", Help: "When the certificate of the server expires, in seconds since 1970.",
	}, func() float64 { return float64(w.keys.Certificate().Until.Unix()) }))
}

// gapCollector collects the number of clients whose parameters select no resource of a type.
type gapCollector struct{ aggregates *aggregates }

var gapDesc = prometheus.NewDesc("xdspub_clients_without_variant",
	"Clients whose dynamic parameters select no resource of the type, although the snapshot has such resources.", []string{"type"}, nil)

// Describe describes the series.
func (gapCollector) Describe(to chan<- *prometheus.Desc) { to <- gapDesc }

// Collect collects the values.
func (g gapCollector) Collect(to chan<- prometheus.Metric) {
	defer func() { // the library calls Collect on a goroutine of its own
		if value := recover(); value != nil {
			to <- prometheus.NewInvalidMetric(gapDesc, crash.Of(value))
		}
	}()
	for api, n := range g.aggregates.gaps() {
		to <- prometheus.MustNewConstMetric(gapDesc, prometheus.GaugeValue, float64(n), api)
	}
}

// asked counts a request, and a NACK if refused is not nil.
func (m *metrics) asked(typeURL string, refused *rpcstatus.Status) {
	m.requests.WithLabelValues(label(typeURL)).Inc()
	if refused != nil {
		m.rejected.WithLabelValues(label(typeURL)).Inc()
	}
}

// sent counts the bytes of a message if the message is a discovery response.
func (m *metrics) sent(message any, bytes int) {
	if r, ok := message.(interface{ GetTypeUrl() string }); ok {
		m.bytes.WithLabelValues(label(r.GetTypeUrl())).Add(float64(bytes))
	}
}

// restMetrics counts the requests and responses of the REST endpoint.
type restMetrics struct{ *metrics }

// Asked counts a request.
func (m restMetrics) Asked(t *xds.Type) { m.requests.WithLabelValues(t.API).Inc() }

// Answered counts a response of this size.
func (m restMetrics) Answered(t *xds.Type, bytes int) {
	m.responses.WithLabelValues(t.API).Inc()
	m.bytes.WithLabelValues(t.API).Add(float64(bytes))
}

// Rejected counts a response that a client rejects.
func (m restMetrics) Rejected(t *xds.Type) { m.rejected.WithLabelValues(t.API).Inc() }

// label returns the API of a type, such as CDS, as a label; "unknown" for an unknown type.
func label(typeURL string) string {
	if t := xds.TypeOfURL(typeURL); t != nil {
		return t.API
	}
	return "unknown"
}
