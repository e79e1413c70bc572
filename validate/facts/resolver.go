package facts

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// AsksResolver reports whether Envoy looks at a resolver address, or at the configuration of a
// resolver: where it stands in a cluster's own resolver fields, the cluster must look names
// up, and they must be the fields that it prefers.
func AsksResolver(v *envoyapi.Version, n *xds.Node) bool {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch {
	case at == nil || Inside(n, "envoy.config.cluster.v3.Cluster.CustomClusterType"):
		return true
	case !v.ClusterKindOf(c).Resolves:
		return false
	case c.GetTypedDnsResolverConfig() != nil:
		return Inside(n, "envoy.config.cluster.v3.Cluster.typed_dns_resolver_config")
	case c.GetDnsResolutionConfig() != nil:
		return Inside(n, "envoy.config.cluster.v3.Cluster.dns_resolution_config")
	default:
		return true
	}
}
