package validate

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var duplicateDomain = &Rule{
	Code: "duplicate-domain",
	Doc: `A domain stands twice in one route configuration.

Envoy refuses the route configuration: "Only unique values for domains are
permitted", for * "Only a single wildcard domain is permitted". Upper and lower
case are the same, also in wildcards; two entries in one virtual host count as
well.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RouteConfiguration"},
	Lookup: func(p *LookupPass, n *xds.Node) {
		routes := n.Message.(*routev3.RouteConfiguration)
		seen := make(map[string]func() place)
		check := func(host *routev3.VirtualHost, r *xds.Resource, at func() xds.Path) {
			for i, domain := range host.GetDomains() {
				key := lowerASCII(domain)
				first, twice := seen[key]
				here := func() place { return place{r, at().Field("domains").Index(i)} }
				if !twice {
					seen[key] = here
					continue
				}
				p.Report(Finding{
					Resource: r,
					Path:     here().path,
					Message:  fmt.Sprintf("domain %q stands twice in route configuration %q", domain, routes.GetName()),
					Help:     "a domain belongs to one virtual host; Envoy ignores its case",
					Related:  related(first().Resource, first().path, "first stands here"),
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
			check(r.Message.(*routev3.VirtualHost), r, func() xds.Path { return "" })
		}
	},
}

// hostsOfRoutes are the virtual hosts of VHDS by the route configuration that they belong
// to, the first of those with one name.
var hostsOfRoutes = NewIndex(findHosts)

func findHosts(s *xds.Snapshot) map[string][]*xds.Resource {
	hosts := make(map[string][]*xds.Resource)
	for _, r := range named(s.Of(xds.VirtualHost)) {
		if s.Lookup(r.Type, r.Name) == r {
			hosts[xds.RoutesOfHost(r.Name)] = append(hosts[xds.RoutesOfHost(r.Name)], r)
		}
	}
	return hosts
}

// lowerASCII is how Envoy compares domains: é and É are two.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
