package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var duplicateDomain = &validate.Rule{
	Code: "duplicate-domain",
	Doc: `A route configuration has a duplicate domain.

Envoy rejects the route configuration: "Only unique values for domains are permitted", for *
"Only a single wildcard domain is permitted". It ignores case, also in wildcards. Two entries
in one virtual host count as duplicates too.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RouteConfiguration"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		routes := n.Message.(*routev3.RouteConfiguration)
		seen := make(map[string]func() facts.Place)
		check := func(host *routev3.VirtualHost, r *xds.Resource, at func() xds.Path) {
			for i, domain := range host.GetDomains() {
				key := facts.LowerASCII(domain)
				first, twice := seen[key]
				here := func() facts.Place { return facts.Place{Resource: r, Path: at().Field("domains").Index(i)} }
				if !twice {
					seen[key] = here
					continue
				}
				p.Report(validate.Finding{
					Resource: r,
					Path:     here().Path,
					Message:  fmt.Sprintf("duplicate domain %q in route configuration %q", domain, routes.GetName()),
					Help:     "keep it in one virtual host; Envoy ignores case here",
					Related:  facts.Related(first().Resource, first().Path, "the first one is here"),
				})
			}
		}
		for i, host := range routes.GetVirtualHosts() {
			check(host, p.Resource, func() xds.Path { return n.Path().Field("virtual_hosts").Index(i) })
		}
		if routes.GetVhds() == nil {
			return
		}
		for _, r := range hostsOfRoutes.Lookup(p.Snapshot, routes.GetName()) {
			check(r.Message().(*routev3.VirtualHost), r, func() xds.Path { return "" })
		}
	},
}

// hostsOfRoutes maps the name of a route configuration to its virtual hosts from VHDS. Of several virtual hosts
// with one name, it has the first.
var hostsOfRoutes = validate.NewIndex([]*xds.Type{xds.VirtualHost}, func(s *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	if r.Name != "" && s.Lookup(r.Type, r.Name) == r {
		add(xds.RoutesOfHost(r.Name), r)
	}
})
