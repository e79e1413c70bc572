package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// checkTransport checks the HTTP options m of a cluster against its transport sockets. n is the node of m, at the
// node of the cluster.
func checkTransport(p *validate.Pass, n *xds.Node, m *httpv3.HttpProtocolOptions, at *xds.Node, c *clusterv3.Cluster) {
	var http3 xds.Path
	switch o := m.GetUpstreamProtocolOptions().(type) {
	case *httpv3.HttpProtocolOptions_ExplicitHttpConfig_:
		if o.ExplicitHttpConfig.GetHttp3ProtocolOptions() != nil {
			http3 = n.Path().Field("explicit_http_config").Field("http3_protocol_options")
		}
	case *httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig:
		if o.UseDownstreamProtocolConfig.GetHttp3ProtocolOptions() != nil {
			http3 = n.Path().Field("use_downstream_protocol_config").Field("http3_protocol_options")
		}
	case *httpv3.HttpProtocolOptions_AutoConfig:
		checkALPN(p, n.Path().Field("auto_config"), at, c)
		if o.AutoConfig.GetHttp3ProtocolOptions() != nil && doesALPN(c.GetTransportSocket()) {
			http3 = n.Path().Field("auto_config").Field("http3_protocol_options")
		}
	}
	if http3 != "" && !isQUIC(c.GetTransportSocket()) {
		p.Report(validate.Finding{
			Check:   "quic-transport",
			Path:    http3,
			Message: "HTTP/3 needs a QUIC transport socket",
			Help:    "add a transport_socket with the name envoy.transport_sockets.quic (Envoy checks the name) and a QuicUpstreamTransport",
		})
	}
}

func checkALPN(p *validate.Pass, path xds.Path, at *xds.Node, c *clusterv3.Cluster) {
	if !doesALPN(c.GetTransportSocket()) {
		p.Report(validate.Finding{
			Check:   "alpn",
			Path:    path,
			Message: "auto_config needs ALPN, which the cluster's transport socket does not support",
			Help:    "add a TLS transport_socket to the cluster, or use explicit_http_config",
		})
		return
	}
	for i, match := range c.GetTransportSocketMatches() {
		if match.GetTransportSocket() != nil && !doesALPN(match.GetTransportSocket()) {
			p.Report(validate.Finding{
				Check:   "alpn",
				Path:    at.Path().Field("transport_socket_matches").Index(i).Field("transport_socket"),
				Message: "the cluster has auto_config, and this transport socket does not support ALPN",
				Help:    "use a TLS transport socket, or explicit_http_config in the cluster",
				Related: facts.Related(p.Resource, path, "auto_config is here"),
			})
		}
	}
}

// socketWrapper is the configuration of a transport socket that wraps another transport socket.
type socketWrapper interface {
	GetTransportSocket() *corev3.TransportSocket
}

// doesALPN reports whether a transport socket negotiates ALPN. A cluster without a transport socket uses plain TCP,
// without ALPN. doesALPN returns true for a transport socket that other rules report.
func doesALPN(s *corev3.TransportSocket) bool {
	if s == nil {
		return false
	}
	name := xds.PayloadType(s.GetTypedConfig())
	if wrapper, ok := xds.Unpack(s.GetTypedConfig()).(socketWrapper); ok {
		return doesALPN(wrapper.GetTransportSocket())
	}
	switch name {
	case "envoy.extensions.transport_sockets.alts.v3.Alts",
		"envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer",
		"envoy.extensions.transport_sockets.starttls.v3.UpstreamStartTlsConfig":
		return false
	}
	return true
}

// isQUIC reports whether Envoy treats a transport socket as QUIC.
func isQUIC(s *corev3.TransportSocket) bool {
	const quic, proxy = "envoy.transport_sockets.quic", "envoy.transport_sockets.http_11_proxy"
	if s.GetName() != proxy {
		return s.GetName() == quic
	}
	m, ok := xds.Unpack(s.GetTypedConfig()).(*httpproxyv3.Http11ProxyUpstreamTransport)
	return !ok || m.GetTransportSocket().GetName() == quic
}
