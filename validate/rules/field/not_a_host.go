package field

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var notAHost = &validate.Rule{
	Code:     "not-a-host",
	Severity: diag.Warning,
	Doc: `A hostname field contains a URL or a port.

Envoy accepts the text as it is. It looks up an endpoint address with a scheme or a port in
DNS, where no such name exists, and the cluster stays without endpoints (update_failure). An
SNI or server name with a port matches no client and no server. A host_redirect with a
scheme gives "location: http://https://…".`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.GrpcService.EnvoyGrpc",
		"envoy.config.core.v3.HealthCheck.GrpcHealthCheck",
		"envoy.config.core.v3.HealthCheck.HttpHealthCheck",
		"envoy.config.endpoint.v3.Endpoint",
		"envoy.config.endpoint.v3.Endpoint.HealthCheckConfig",
		"envoy.config.endpoint.v3.LbEndpoint",
		"envoy.config.listener.v3.FilterChainMatch",
		"envoy.config.route.v3.RedirectAction",
		"envoy.config.route.v3.RouteAction",
		"envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.TunnelingConfig",
		"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		authority := func(field xds.Path, text string) { checkHost(p, n, field, text, portAllowed) }
		name := func(field xds.Path, text, port string) { checkHost(p, n, field, text, port) }
		switch m := n.Message.(type) {
		case *corev3.GrpcService_EnvoyGrpc:
			authority("authority", m.GetAuthority())
		case *corev3.HealthCheck_GrpcHealthCheck:
			authority("authority", m.GetAuthority())
		case *corev3.HealthCheck_HttpHealthCheck:
			authority("host", m.GetHost())
		case *endpointv3.Endpoint:
			authority("hostname", m.GetHostname())
		case *endpointv3.Endpoint_HealthCheckConfig:
			authority("hostname", m.GetHostname())
		case *endpointv3.LbEndpoint:
			if facts.UseOfEndpoints(p.Envoy, n) == facts.EndpointsLookedUp {
				name("endpoint.address.socket_address.address", m.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), "the port belongs in port_value")
			}
		case *listenerv3.FilterChainMatch:
			for i, server := range m.GetServerNames() {
				name(xds.Path("server_names").Index(i), server, "a client sends the name without its port")
			}
		case *routev3.RedirectAction:
			authority("host_redirect", m.GetHostRedirect())
		case *routev3.RouteAction:
			authority("host_rewrite_literal", m.GetHostRewriteLiteral())
		case *routev3.RouteAction_RequestMirrorPolicy:
			authority("host_rewrite_literal", m.GetHostRewriteLiteral())
		case *routev3.WeightedCluster_ClusterWeight:
			authority("host_rewrite_literal", m.GetHostRewriteLiteral())
		case *tcpproxyv3.TcpProxy_TunnelingConfig:
			authority("hostname", m.GetHostname())
		case *tlsv3.UpstreamTlsContext:
			name("sni", m.GetSni(), "a server name has no port")
		}
	},
}

// portAllowed is the port argument of checkHost for a field that accepts a port after the host.
const portAllowed = ""

var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// checkHost reports a text that is a URL. Unless port is portAllowed, checkHost also reports a text with a port.
// port tells where the port belongs.
func checkHost(p *validate.Pass, n *xds.Node, field xds.Path, text, port string) {
	host := urlScheme.ReplaceAllString(text, "")
	is := ""
	if host != text {
		is = "a URL"
		host, _, _ = strings.Cut(host, "/")
	}
	help := fmt.Sprintf("write %q", host)
	if _, err := netip.ParseAddr(host); err != nil && port != portAllowed && facts.PortAtEnd.MatchString(host) {
		host = facts.PortAtEnd.ReplaceAllString(host, "")
		help = fmt.Sprintf("write %q: %s", host, port)
		if is == "" {
			is = "a hostname with a port"
		}
	}
	if is == "" {
		return
	}
	if host == "" || strings.Contains(text, "%") {
		help = "write the hostname only"
	}
	p.Report(validate.Finding{
		Path:    n.Path().Join(field),
		Message: fmt.Sprintf("%s %q is %s, not a hostname", last(field), text, is),
		Help:    help,
	})
}

// last returns the name of the last field of a path.
func last(path xds.Path) string {
	name := string(path)[strings.LastIndexByte(string(path), '.')+1:]
	name, _, _ = strings.Cut(name, "[")
	return name
}
