package envoyapi

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// ClusterKind describes a cluster factory of Envoy, which makes the clusters of one type.
type ClusterKind struct {
	// Factory is the name of the factory; empty in the zero value, which means that Envoy has no factory.
	Factory string
	// Config is the type of the factory's typed_config; empty if the factory has none.
	Config protoreflect.FullName
	// NeedsConfig means that typed_config is required.
	NeedsConfig bool
	// Balances means that the cluster itself chooses its endpoints: CLUSTER_PROVIDED.
	Balances bool
	// Inline means that the endpoints stand in load_assignment.
	Inline bool
	// Resolves means that the cluster resolves its endpoints by DNS, with its own DNS fields.
	Resolves bool
}

// clusterKinds returns the factories in a file. It leaves out a factory that is not in extensions.
func (r *reader) clusterKinds(file string, extensions extensionTable) (kinds []ClusterKind) {
	for _, words := range r.rows(file, 1) {
		e, ok := extensions.byName[extensionKey{"envoy.clusters", words[0]}]
		if !ok {
			continue
		}
		k := ClusterKind{Factory: e.Name, Config: e.Config}
		r.flags(file, words[1:], flag{"needs-config", &k.NeedsConfig}, flag{"balances", &k.Balances}, flag{"inline", &k.Inline}, flag{"resolves", &k.Resolves})
		kinds = append(kinds, k)
	}
	return kinds
}

// ClusterKinds returns the cluster factories.
func (v *Version) ClusterKinds() []ClusterKind { return v.tables().clusters }

// kindOfType maps Cluster.type to the name of the factory.
var kindOfType = map[clusterv3.Cluster_DiscoveryType]string{
	clusterv3.Cluster_STATIC:       "envoy.cluster.static",
	clusterv3.Cluster_STRICT_DNS:   "envoy.cluster.strict_dns",
	clusterv3.Cluster_LOGICAL_DNS:  "envoy.cluster.logical_dns",
	clusterv3.Cluster_EDS:          "envoy.cluster.eds",
	clusterv3.Cluster_ORIGINAL_DST: "envoy.cluster.original_dst",
}

// ClusterKindOf returns the factory that makes a cluster; the zero ClusterKind if Envoy has none. Envoy finds the
// factory of a cluster_type by the type of its typed_config, whatever the name. Without a typed_config, or if it is
// a google.protobuf.Struct, Envoy finds the factory by the name.
func (v *Version) ClusterKindOf(c *clusterv3.Cluster) ClusterKind {
	custom := c.GetClusterType()
	factory := kindOfType[c.GetType()]
	if custom != nil {
		factory = custom.GetName()
	}
	config := CustomClusterConfig(custom)
	for _, k := range v.tables().clusters {
		if config != "" && k.Config == config || config == "" && k.Factory == factory {
			return k
		}
	}
	return ClusterKind{}
}

// CustomClusterConfig returns the type by which Envoy finds the factory of a cluster_type; empty if Envoy
// searches by name.
func CustomClusterConfig(custom *clusterv3.Cluster_CustomClusterType) protoreflect.FullName {
	if config := xds.PayloadType(custom.GetTypedConfig()); config != "google.protobuf.Struct" {
		return config
	}
	return ""
}

// ResolvesInDNS reports whether Envoy resolves the cluster's endpoints by DNS, so that endpoints may be host names.
func (v *Version) ResolvesInDNS(c *clusterv3.Cluster) bool {
	k := v.ClusterKindOf(c)
	return k.Resolves || k.Factory == "envoy.cluster.dns"
}

// ClusterTypeText returns the type of a cluster for a message: the factory of a cluster_type, or else the type, as
// in STRICT_DNS.
func (v *Version) ClusterTypeText(c *clusterv3.Cluster) string {
	if c.GetClusterType() != nil {
		return v.ClusterKindOf(c).Factory
	}
	return c.GetType().String()
}
