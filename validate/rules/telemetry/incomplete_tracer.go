package telemetry

import (
	"fmt"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	samplersv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var incompleteTracer = &validate.Rule{
	Code: "incomplete-tracer",
	Doc: `A tracer's collector or sampler is missing or invalid.

Envoy rejects the listener. zipkin needs collector_cluster and collector_endpoint, or a
collector_service with an http_uri ("collector_cluster and collector_endpoint must be
specified when not using collector_service"). OpenTelemetry needs exactly one of grpc_service
and http_service ("must have exactly one of gRPC, HTTP, or custom exporter configured"); a
parent-based sampler needs the sampler that it wraps, and a CEL sampler an expression. X-Ray
needs a daemon_endpoint with protocol UDP and a numeric port ("X-Ray daemon endpoint must be a
UDP socket address").

Two mistakes crash Envoy: collector_endpoint_version GRPC of zipkin, and a daemon_endpoint of
X-Ray that is not an IP address; write IPv6 in brackets, as in [::1].`,
	Checks: []diag.Check{
		{Name: "collector", Summary: "A tracer has no collector, or two."},
		{Name: "grpc-endpoint-version", Summary: "collector_endpoint_version GRPC crashes Envoy."},
		{Name: "no-exporter", Summary: "An OpenTelemetry tracer has no receiver of its spans."},
		{Name: "sampler", Summary: "A sampler has no expression, or no wrapped_sampler."},
		{Name: "x-ray-endpoint", Summary: "The daemon_endpoint of X-Ray is missing or unusable."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.trace.v3.OpenTelemetryConfig",
		"envoy.config.trace.v3.XRayConfig",
		"envoy.config.trace.v3.ZipkinConfig",
		"envoy.extensions.tracers.opentelemetry.samplers.v3.CELSamplerConfig",
		"envoy.extensions.tracers.opentelemetry.samplers.v3.ParentBasedSamplerConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if facts.IsUnread(n) {
			return
		}
		wrong := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *tracev3.OpenTelemetryConfig:
			checkExporter(m, wrong)
		case *tracev3.XRayConfig:
			checkDaemon(m.GetDaemonEndpoint(), wrong)
		case *tracev3.ZipkinConfig:
			checkCollector(m, wrong)
		case *samplersv3.CELSamplerConfig:
			if m.GetExpression() == nil {
				wrong("sampler", "", "the CEL sampler has no expression", "set expression.cel_expr_parsed")
			}
		case *samplersv3.ParentBasedSamplerConfig:
			if m.GetWrappedSampler() == nil {
				wrong("sampler", "", "the parent-based sampler has no wrapped_sampler", "set wrapped_sampler, which decides for spans without a parent")
			}
		}
	},
}

func checkExporter(m *tracev3.OpenTelemetryConfig, wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	grpc, http, own := m.GetGrpcService() != nil, m.GetHttpService() != nil, m.GetExporter() != nil
	switch {
	case !grpc && !http && !own:
		wrong("no-exporter", "", "the OpenTelemetry tracer has no collector", "set grpc_service or http_service")
	case grpc && http:
		wrong("collector", "http_service", "both http_service and grpc_service are set", facts.KeepOne)
	case own && (grpc || http):
		wrong("collector", "exporter", "both exporter and a service are set", facts.KeepOne)
	}
}

func checkCollector(m *tracev3.ZipkinConfig, wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	service := m.GetCollectorService()
	switch {
	case service == nil && (m.GetCollectorCluster() == "" || m.GetCollectorEndpoint() == ""):
		wrong("collector", "", "the zipkin tracer has no collector", "set collector_cluster and collector_endpoint, or collector_service")
	case service != nil && service.GetHttpUri() == nil:
		wrong("collector", "collector_service", "collector_service has no http_uri", "set http_uri with the cluster and the path")
	case m.GetCollectorEndpointVersion() == tracev3.ZipkinConfig_GRPC:
		wrong("grpc-endpoint-version", "collector_endpoint_version", "collector_endpoint_version GRPC crashes Envoy", "use HTTP_JSON or HTTP_PROTO")
	}
}

func checkDaemon(a *corev3.SocketAddress, wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	const at = xds.Path("daemon_endpoint")
	switch {
	case a.GetProtocol() != corev3.SocketAddress_UDP:
		if a == nil {
			wrong("x-ray-endpoint", "", "the X-Ray tracer has no daemon_endpoint", "set daemon_endpoint with protocol: UDP")
			return
		}
		wrong("x-ray-endpoint", at, "the daemon_endpoint of X-Ray uses TCP, and must use UDP", "set protocol: UDP")
	case a.GetNamedPort() != "":
		wrong("x-ray-endpoint", at.Field("named_port"), fmt.Sprintf("the daemon_endpoint of X-Ray has the named port %q, and "+
			"needs a number", a.GetNamedPort()), "set port_value")
	case a.GetAddress() != "" && !isHost(a.GetAddress()):
		wrong("x-ray-endpoint", at.Field("address"), fmt.Sprintf("address %q in the daemon_endpoint of X-Ray "+
			"crashes Envoy", a.GetAddress()), "write an IP address; IPv6 in brackets, as in [::1]")
	}
}

// isHost reports whether an address is an IP address in the form that it has before a port: an IPv6 address in
// brackets.
func isHost(address string) bool {
	_, err := netip.ParseAddrPort(address + ":1")
	return err == nil
}
