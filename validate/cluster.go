package validate

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// clusterKind is what makes a cluster in Envoy: a cluster factory of its binary.
type clusterKind struct {
	// factory is its name; empty for one that Envoy does not have.
	factory string
	// config is the type of its typed_config, for those that have one.
	config protoreflect.FullName
	// needsConfig tells that it does not come without.
	needsConfig bool
	// balances tells that it chooses endpoints itself: CLUSTER_PROVIDED.
	balances bool
	// inline tells that it takes its endpoints from load_assignment.
	inline bool
	// resolves tells that it asks DNS for its endpoints, and listens to the
	// cluster's own DNS fields.
	resolves bool
}

// clusterKinds are the cluster factories of Envoy 1.40.0. redis and
// dynamic_modules choose endpoints where lb_policy is CLUSTER_PROVIDED.
var clusterKinds = []clusterKind{
	{factory: "envoy.cluster.dns", config: "envoy.extensions.clusters.dns.v3.DnsCluster", inline: true},
	{factory: "envoy.cluster.eds"},
	{factory: "envoy.cluster.logical_dns", inline: true, resolves: true},
	{factory: "envoy.cluster.original_dst", config: "envoy.extensions.clusters.original_dst.v3.OriginalDstCluster", balances: true},
	{factory: "envoy.cluster.static", inline: true},
	{factory: "envoy.cluster.strict_dns", inline: true, resolves: true},
	{factory: "envoy.clusters.aggregate", config: "envoy.extensions.clusters.aggregate.v3.ClusterConfig", needsConfig: true, balances: true},
	{factory: "envoy.clusters.composite", config: "envoy.extensions.clusters.composite.v3.ClusterConfig", needsConfig: true, balances: true},
	{factory: "envoy.clusters.dynamic_forward_proxy", config: "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig", balances: true},
	{factory: "envoy.clusters.dynamic_modules", config: "envoy.extensions.clusters.dynamic_modules.v3.ClusterConfig", needsConfig: true},
	{factory: "envoy.clusters.mcp_multicluster", config: "envoy.extensions.clusters.mcp_multicluster.v3.ClusterConfig", needsConfig: true, balances: true},
	{factory: "envoy.clusters.redis", config: "envoy.extensions.clusters.redis.v3.RedisClusterConfig", inline: true, resolves: true},
	{factory: "envoy.clusters.reverse_connection", config: "envoy.extensions.clusters.reverse_connection.v3.ReverseConnectionClusterConfig", needsConfig: true, balances: true},
}

var kindOfType = map[clusterv3.Cluster_DiscoveryType]string{
	clusterv3.Cluster_STATIC:       "envoy.cluster.static",
	clusterv3.Cluster_STRICT_DNS:   "envoy.cluster.strict_dns",
	clusterv3.Cluster_LOGICAL_DNS:  "envoy.cluster.logical_dns",
	clusterv3.Cluster_EDS:          "envoy.cluster.eds",
	clusterv3.Cluster_ORIGINAL_DST: "envoy.cluster.original_dst",
}

// kindOf tells what makes a cluster. cluster_type is found by the type of its
// typed_config, whatever its name; by its name only where it has none.
func kindOf(c *clusterv3.Cluster) clusterKind {
	custom := c.GetClusterType()
	factory := kindOfType[c.GetType()]
	if custom != nil {
		factory = custom.GetName()
	}
	config := customConfig(custom)
	for _, k := range clusterKinds {
		if config != "" && k.config == config || config == "" && k.factory == factory {
			return k
		}
	}
	return clusterKind{}
}

// customConfig is the type by which Envoy looks for the factory of a cluster_type,
// empty where it looks by the name.
func customConfig(custom *clusterv3.Cluster_CustomClusterType) protoreflect.FullName {
	if config := typeOf(custom.GetTypedConfig()); config != "google.protobuf.Struct" {
		return config
	}
	return ""
}

// resolvesInDNS tells whether the cluster's endpoints may be host names.
func resolvesInDNS(c *clusterv3.Cluster) bool {
	k := kindOf(c)
	return k.resolves || k.factory == "envoy.cluster.dns"
}

// kindText names the cluster's type as its author wrote it.
func kindText(c *clusterv3.Cluster) string {
	if c.GetClusterType() != nil {
		return kindOf(c).factory
	}
	return c.GetType().String()
}

// inBinary tells whether Envoy's binary holds a type.
func inBinary(name protoreflect.FullName) bool {
	return knownType(string(name)) && xds.InEnvoy(name)
}
