package field

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstreamportv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/matchers/upstream_ip_port/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

const maxPort = 65535

var portOutOfRange = &validate.Rule{
	Code:     "port-out-of-range",
	Severity: diag.Warning,
	Doc: `A port is above 65535, in a field that Envoy does not check.

A redirect to such a port leads nowhere, a health check of it always fails, and a range of
such ports matches nothing. In the fields that Envoy checks, field-constraint reports it.`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.HealthCheck",
		"envoy.config.listener.v3.ListenerFilterChainMatchPredicate",
		"envoy.config.rbac.v3.Permission",
		"envoy.config.route.v3.RedirectAction",
		"envoy.extensions.filters.network.http_connection_manager.v3.ForwardProtoConfig",
		"envoy.extensions.rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		check := func(field xds.Path, port int64) {
			if port > maxPort {
				p.Report(validate.Finding{
					Path:    n.Path().Join(field),
					Message: fmt.Sprintf("port %d is above %d", port, maxPort),
					Help:    "write a port from 1 to 65535",
				})
			}
		}
		ports := func(field xds.Path, list []uint32) {
			for i, port := range list {
				check(field.Index(i), int64(port))
			}
		}
		switch m := n.Message.(type) {
		case *corev3.HealthCheck:
			check("alt_port", int64(m.GetAltPort().GetValue()))
		case *listenerv3.ListenerFilterChainMatchPredicate:
			check("destination_port_range.start", int64(m.GetDestinationPortRange().GetStart()))
		case *rbacv3.Permission:
			check("destination_port_range.start", int64(m.GetDestinationPortRange().GetStart()))
		case *routev3.RedirectAction:
			check("port_redirect", int64(m.GetPortRedirect()))
		case *hcmv3.ForwardProtoConfig:
			ports("https_destination_ports", m.GetHttpsDestinationPorts())
			ports("http_destination_ports", m.GetHttpDestinationPorts())
		case *upstreamportv3.UpstreamIpPortMatcher:
			check("upstream_port_range.start", m.GetUpstreamPortRange().GetStart())
		}
	},
}
