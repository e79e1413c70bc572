package cluster

import (
	"encoding/hex"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/v3"
	healththriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/thrift/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var healthCheck = &validate.Rule{
	Code: "health-check",
	Doc: `A health check has missing or invalid settings.

If a cluster has several health checks, each needs a unique name. The text of a payload is
a string of hexadecimal digits ("invalid hex string"). An HTTP health check needs status
ranges between 100 and 600 (the end is excluded), sends a payload only with the methods
POST, PUT, PATCH and OPTIONS, and its receive payloads together must fit into
response_buffer_size (1024 by default, 0 for no limit). A gRPC health check needs a cluster
with HTTP/2. A Thrift health check needs a transport and a protocol other than AUTO, and
does not support the protocol TWITTER.

Envoy accepts codec_client_type HTTP3 and crashes (std::terminate) when it connects to the
first endpoint.`,
	Checks: []diag.Check{
		{Name: "duplicate-name", Summary: "Two health checks of a cluster have one name."},
		{Name: "grpc-without-http2", Summary: "A gRPC health check needs HTTP/2, and the cluster does not use it."},
		{Name: "http3-codec", Summary: "A health check uses the codec HTTP3, and crashes Envoy."},
		{Name: "no-name", Summary: "One of several health checks has no name."},
		{Name: "payload-method", Summary: "A request of this method can't send a payload."},
		{Name: "payload-text", Summary: "The text of a payload is not hexadecimal."},
		{Name: "response-size", Summary: "The expected response is larger than response_buffer_size."},
		{Name: "status-range", Summary: "A range is not one of HTTP statuses."},
		{Name: "thrift-options", Summary: "A Thrift health check has an unsupported transport or protocol."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.config.core.v3.HealthCheck.GrpcHealthCheck",
		"envoy.config.core.v3.HealthCheck.HttpHealthCheck",
		"envoy.config.core.v3.HealthCheck.Payload",
		"envoy.extensions.health_checkers.thrift.v3.Thrift",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			checkHealthCheckNames(p, n, m)
		case *corev3.HealthCheck_GrpcHealthCheck:
			if c, at := xds.Enclosing[*clusterv3.Cluster](n); at != nil && !speaksHTTP2(c) {
				p.Report(validate.Finding{
					Check:   "grpc-without-http2",
					Path:    n.Path(),
					Message: "a gRPC health check needs HTTP/2, and the cluster does not use it",
					Help:    "set http2_protocol_options in the cluster's typed_extension_protocol_options",
				})
			}
		case *corev3.HealthCheck_HttpHealthCheck:
			checkHTTPHealthCheck(p, n, m)
		case *corev3.HealthCheck_Payload:
			if _, err := hex.DecodeString(m.GetText()); err != nil {
				p.Report(validate.Finding{
					Check:   "payload-text",
					Path:    n.Path().Field("text"),
					Message: fmt.Sprintf("the payload %.60q is not hexadecimal", m.GetText()),
					Help:    "write two digits for each byte, such as 50494e47 for PING, or use binary with base64",
				})
			}
		case *healththriftv3.Thrift:
			checkThriftHealthCheck(p, n, m)
		}
	},
}

func checkHealthCheckNames(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	if len(c.GetHealthChecks()) < 2 {
		return
	}
	first := make(map[string]xds.Path)
	var nameless []xds.Path
	for i, check := range c.GetHealthChecks() {
		path := n.Path().Field("health_checks").Index(i)
		name := check.GetName()
		switch earlier, doubled := first[name]; {
		case name == "":
			nameless = append(nameless, path)
		case doubled:
			p.Report(validate.Finding{
				Check:   "duplicate-name",
				Path:    path.Field("name"),
				Message: fmt.Sprintf("two health checks have the name %q", name),
				Help:    "give each health check a unique name",
				Related: facts.Related(p.Resource, earlier, "the first one"),
			})
		default:
			first[name] = path.Field("name")
		}
	}
	if len(nameless) == 0 {
		return
	}
	var others []diag.Related
	for _, path := range nameless[1:] {
		others = append(others, facts.Related(p.Resource, path, "this one has no name either")...)
	}
	p.Report(validate.Finding{
		Check:   "no-name",
		Path:    nameless[0],
		Message: "one of several health checks has no name",
		Help:    "give each health check a unique name",
		Related: others,
	})
}

func checkHTTPHealthCheck(p *validate.Pass, n *xds.Node, m *corev3.HealthCheck_HttpHealthCheck) {
	if m.GetCodecClientType() == typev3.CodecClientType_HTTP3 {
		p.Report(validate.Finding{
			Check:   "http3-codec",
			Path:    n.Path().Field("codec_client_type"),
			Message: "a health check with codec_client_type HTTP3 crashes Envoy",
			Help:    "write HTTP1 or HTTP2, and check a TCP port of the endpoint",
		})
	}
	checkStatuses(p, n.Path().Field("expected_statuses"), m.GetExpectedStatuses())
	checkStatuses(p, n.Path().Field("retriable_statuses"), m.GetRetriableStatuses())
	if m.GetSend() != nil {
		switch m.GetMethod() {
		case corev3.RequestMethod_POST, corev3.RequestMethod_PUT, corev3.RequestMethod_PATCH, corev3.RequestMethod_OPTIONS:
		case corev3.RequestMethod_CONNECT: // reported by field-constraint
		default:
			method := m.GetMethod()
			if method == corev3.RequestMethod_METHOD_UNSPECIFIED {
				method = corev3.RequestMethod_GET
			}
			p.Report(validate.Finding{
				Check:   "payload-method",
				Path:    n.Path().Field("send"),
				Message: fmt.Sprintf("a %s request can't send a payload", method),
				Help:    "set method to POST, PUT, PATCH or OPTIONS, or remove send",
			})
		}
	}
	checkExpectedResponse(p, n, m)
}

func checkStatuses(p *validate.Pass, path xds.Path, ranges []*typev3.Int64Range) {
	for i, r := range ranges {
		if r.GetStart() < 100 || r.GetEnd() > 600 || r.GetStart() >= r.GetEnd() {
			p.Report(validate.Finding{
				Check:   "status-range",
				Path:    path.Index(i),
				Message: fmt.Sprintf("the range from %d up to, but not including, %d is not a range of HTTP statuses", r.GetStart(), r.GetEnd()),
				Help:    "write a start of at least 100, and an end above the start and at most 600",
			})
		}
	}
}

func checkExpectedResponse(p *validate.Pass, n *xds.Node, m *corev3.HealthCheck_HttpHealthCheck) {
	most := uint64(1024)
	if size := m.GetResponseBufferSize(); size != nil {
		most = size.GetValue()
	}
	var length uint64
	for _, payload := range m.GetReceive() {
		length += uint64(len(payload.GetBinary()) + len(payload.GetText())/2)
	}
	if most > 0 && length > most {
		p.Report(validate.Finding{
			Check:   "response-size",
			Path:    n.Path().Field("receive"),
			Message: fmt.Sprintf("the expected response has %d bytes, and response_buffer_size is %d", length, most),
			Help:    "raise response_buffer_size, or set it to 0 for no limit",
		})
	}
}

func checkThriftHealthCheck(p *validate.Pass, n *xds.Node, m *healththriftv3.Thrift) {
	if m.GetTransport() == thriftv3.TransportType_AUTO_TRANSPORT {
		p.Report(validate.Finding{
			Check:   "thrift-options",
			Path:    n.Path().Field("transport"),
			Message: "a Thrift health check can't use AUTO_TRANSPORT",
			Help:    "set transport: FRAMED, UNFRAMED or HEADER",
		})
	}
	switch m.GetProtocol() {
	case thriftv3.ProtocolType_AUTO_PROTOCOL, thriftv3.ProtocolType_TWITTER:
		p.Report(validate.Finding{
			Check:   "thrift-options",
			Path:    n.Path().Field("protocol"),
			Message: fmt.Sprintf("a Thrift health check does not support the protocol %s", m.GetProtocol()),
			Help:    "set protocol: BINARY, LAX_BINARY or COMPACT",
		})
	}
}
