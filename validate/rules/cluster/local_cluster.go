package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

var localCluster = &validate.Rule{
	Code:     "local-cluster",
	Severity: diag.Error,
	Doc: `The local cluster has endpoints of a priority other than 0.

local_cluster_name in the bootstrap names the cluster that Envoy itself belongs to; Envoy
finds its own zone there. It rejects a locality with a priority in that cluster ("Unexpected
non-zero priority for local cluster 'c'."), even one without endpoints, and also in an EDS
file. It does not check a cluster of type LOGICAL_DNS.`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		c := n.Message.(*clusterv3.Cluster)
		if n.Parent != nil || c.GetName() == "" || c.GetName() != p.BootstrapFacts.LocalCluster() || hasNoPriorities(p.Envoy, c) {
			return
		}
		r, path, assignment := assignmentOf(p, n, c)
		for i, locality := range assignment.GetEndpoints() {
			if locality.GetPriority() != 0 {
				p.Report(validate.Finding{
					Resource: r,
					Path:     path.Field("endpoints").Index(i).Field("priority"),
					Message:  fmt.Sprintf("cluster %q is the local cluster and can't have priority %d", c.GetName(), locality.GetPriority()),
					Help:     "remove the priority: local_cluster_name names this cluster",
				})
			}
		}
	},
}

// hasNoPriorities reports whether Envoy combines all endpoints of a cluster into one endpoint, and ignores their
// priorities.
func hasNoPriorities(v *envoyapi.Version, c *clusterv3.Cluster) bool {
	kind := v.ClusterKindOf(c)
	if kind.Factory != "envoy.cluster.dns" {
		return kind.Factory == "envoy.cluster.logical_dns"
	}
	var dns dnsclusterv3.DnsCluster
	return c.GetClusterType().GetTypedConfig().UnmarshalTo(&dns) == nil && dns.GetAllAddressesInSingleEndpoint()
}
