package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

var localCluster = &validate.Rule{
	Code:     "local-cluster",
	Severity: diag.Error,
	Doc: `The local cluster has endpoints of a priority other than 0.

local_cluster_name in the bootstrap names it. Envoy looks there for its own zone, and
refuses any locality of it that has a priority ("Unexpected non-zero priority for local
cluster 'c'."), also one without endpoints, and also in a file of EDS. A cluster of type
LOGICAL_DNS is not looked at.`,
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
					Message:  fmt.Sprintf("priority %d in cluster %q, which local_cluster_name names", locality.GetPriority(), c.GetName()),
					Help:     "remove the priority: Envoy finds its own zone in this cluster",
				})
			}
		}
	},
}

// hasNoPriorities reports whether Envoy takes all endpoints of a cluster for one.
func hasNoPriorities(v *envoyapi.Version, c *clusterv3.Cluster) bool {
	kind := v.ClusterKindOf(c)
	if kind.Factory != "envoy.cluster.dns" {
		return kind.Factory == "envoy.cluster.logical_dns"
	}
	var dns dnsclusterv3.DnsCluster
	return c.GetClusterType().GetTypedConfig().UnmarshalTo(&dns) == nil && dns.GetAllAddressesInSingleEndpoint()
}
