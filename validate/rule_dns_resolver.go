package validate

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var dnsResolver = &Rule{
	Code: "dns-resolver",
	Doc: `A DNS resolver is not an IP address.

Envoy asks DNS servers by IP address and port only: a pipe or an internal listener
is refused ("DNS resolver … is not an IP address"). Of a cluster it looks at the
first of typed_dns_resolver_config, dns_resolution_config and dns_resolvers, and
at none where the cluster's type does not look names up.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Address"},
	Node: func(p *Pass, n *xds.Node) {
		address := n.Message.(*corev3.Address)
		if !slices.Contains(resolverAddresses, n.Field()) || address.GetAddress() == nil || address.GetSocketAddress() != nil || !asksResolver(n) {
			return
		}
		p.Report(Finding{
			Path:    n.Path(),
			Message: "a DNS resolver that is not an IP address",
			Help:    "give its socket_address",
		})
	},
}

// resolverAddresses are the fields with addresses of DNS servers.
var resolverAddresses = []protoreflect.FullName{
	"envoy.config.cluster.v3.Cluster.dns_resolvers",
	"envoy.config.core.v3.DnsResolutionConfig.resolvers",
	"envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.resolvers",
}

// asksResolver tells whether Envoy looks at a resolver address: where it stands in
// a cluster's own resolver fields, the cluster must look names up, and they must be
// the fields that it prefers.
func asksResolver(n *xds.Node) bool {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch {
	case at == nil || inside(n, "envoy.config.cluster.v3.Cluster.CustomClusterType"):
		return true
	case !kindOf(c).resolves:
		return false
	case c.GetTypedDnsResolverConfig() != nil:
		return inside(n, "envoy.config.cluster.v3.Cluster.typed_dns_resolver_config")
	case c.GetDnsResolutionConfig() != nil:
		return inside(n, "envoy.config.cluster.v3.Cluster.dns_resolution_config")
	default:
		return true
	}
}
