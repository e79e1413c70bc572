package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var emptyRoutes = &validate.Rule{
	Code:     "empty-routes",
	Severity: diag.Warning,
	Doc: `A route configuration has no virtual hosts, or a virtual host has no routes.

Envoy accepts both, and answers every request with 404. A virtual host without routes that has
require_tls is useful: it redirects to https.`,
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.RouteConfiguration",
		"envoy.config.route.v3.VirtualHost",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *routev3.RouteConfiguration:
			if len(m.GetVirtualHosts())+len(m.GetRouteSpecifiers()) == 0 && m.GetVhds() == nil {
				p.Report(validate.Finding{
					Path:    n.Path(),
					Message: fmt.Sprintf("route configuration %q has no virtual hosts: Envoy answers every request with 404", m.GetName()),
					Help:    "add a virtual host",
				})
			}
		case *routev3.VirtualHost:
			if len(m.GetRoutes())+len(m.GetRouteSpecifiers()) == 0 && m.GetMatcher() == nil && m.GetRequireTls() == routev3.VirtualHost_NONE {
				p.Report(validate.Finding{
					Path:    n.Path(),
					Message: fmt.Sprintf("virtual host %q has no routes: Envoy answers its requests with 404", m.GetName()),
					Help:    "add a route, or remove the virtual host",
				})
			}
		}
	},
}
