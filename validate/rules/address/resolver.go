package address

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate/facts"
	"xdspub/xds"
)

// resolverAddresses are the fields with addresses of DNS servers.
var resolverAddresses = []protoreflect.FullName{
	"envoy.config.cluster.v3.Cluster.dns_resolvers",
	"envoy.config.core.v3.DnsResolutionConfig.resolvers",
	"envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.resolvers",
}

// asksResolver reports whether Envoy looks at a resolver address: where it stands in
// a cluster's own resolver fields, the cluster must look names up, and they must be
// the fields that it prefers.
func asksResolver(n *xds.Node) bool {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch {
	case at == nil || facts.Inside(n, "envoy.config.cluster.v3.Cluster.CustomClusterType"):
		return true
	case !facts.ClusterKindOf(c).Resolves:
		return false
	case c.GetTypedDnsResolverConfig() != nil:
		return facts.Inside(n, "envoy.config.cluster.v3.Cluster.typed_dns_resolver_config")
	case c.GetDnsResolutionConfig() != nil:
		return facts.Inside(n, "envoy.config.cluster.v3.Cluster.dns_resolution_config")
	default:
		return true
	}
}
