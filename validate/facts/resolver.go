package facts

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// AsksResolver reports whether Envoy reads the address or the configuration of a DNS resolver at a node. In a
// cluster, Envoy reads them only if the cluster resolves names. If typed_dns_resolver_config is set, Envoy reads
// this field alone; otherwise, if dns_resolution_config is set, it reads that field alone.
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
