package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/original_dst/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

var clusterType = &validate.Rule{
	Code: "cluster-type",
	Doc: `A cluster's type is unknown, or conflicts with its other fields.

cluster_type selects a cluster factory by the type of its typed_config or, without one, by
its name ("Didn't find a registered cluster factory implementation"). Some factories need a
typed_config. Envoy does not accept envoy.cluster.eds in cluster_type at all, and a Redis
cluster also needs its own name ("Redis cluster can only created with redis cluster type").

Envoy also rejects eds_cluster_config on a cluster whose type is not EDS, a LOGICAL_DNS
cluster without exactly one endpoint, and on ORIGINAL_DST a load_assignment (even an empty
one) or http_header_name without use_http_header. Other types that do not use
load_assignment accept it, and its endpoints get no requests (a warning).`,
	Checks: []diag.Check{
		{Name: "config-missing", Summary: "A cluster type needs a typed_config."},
		{Name: "destination-header", Summary: "http_header_name needs use_http_header."},
		{Name: "eds-config", Summary: "A cluster that is not of type EDS has eds_cluster_config."},
		{Name: "eds-in-cluster-type", Summary: "cluster_type is envoy.cluster.eds."},
		{Name: "endpoints-unused", Summary: "A cluster of this type does not use its load_assignment."},
		{Name: "load-assignment", Summary: "A cluster of this type can't have a load_assignment."},
		{Name: "not-a-cluster-type", Summary: "A typed_config is not that of a cluster type."},
		{Name: "redis-name", Summary: "A Redis cluster has another name in cluster_type."},
		{Name: "single-endpoint", Summary: "A LOGICAL_DNS cluster does not have exactly one endpoint."},
		{Name: "unknown-name", Summary: "The name of a cluster type is unknown."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.extensions.clusters.dns.v3.DnsCluster",
		"envoy.extensions.clusters.original_dst.v3.OriginalDstCluster",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			k := p.Envoy.ClusterKindOf(m)
			if k.Factory == "" || k.NeedsConfig && m.GetClusterType().GetTypedConfig() == nil {
				checkClusterFactory(p, n, m, k)
				return
			}
			if k.Factory == redisCluster && m.GetClusterType().GetName() != redisCluster {
				p.Report(validate.Finding{
					Check: "redis-name",
					Path:  n.Path().Field("cluster_type").Field("name"),
					Message: fmt.Sprintf("cluster_type is named %q and has the configuration of %s: Envoy needs "+
						"that name too", m.GetClusterType().GetName(), redisCluster),
					Help: "write name: " + redisCluster,
				})
			}
			checkDiscovery(p, n, m, k)
			checkEndpointsOfType(p, n, m, k)
			if k.Factory == "envoy.cluster.original_dst" && envoyapi.CustomClusterConfig(m.GetClusterType()) == "" {
				checkDestinationHeader(p, n.Path().Field("original_dst_lb_config"), m.GetOriginalDstLbConfig())
			}
		case *dnsclusterv3.DnsCluster:
			if c, at := xds.Enclosing[*clusterv3.Cluster](n); at != nil && m.GetAllAddressesInSingleEndpoint() {
				checkSingleEndpoint(p, at, c)
			}
		case *originaldstv3.OriginalDstCluster:
			checkDestinationHeader(p, n.Path(), m)
		}
	},
}

const redisCluster = "envoy.clusters.redis"

func checkClusterFactory(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster, k envoyapi.ClusterKind) {
	custom := c.GetClusterType()
	config := envoyapi.CustomClusterConfig(custom)
	switch {
	case k.NeedsConfig:
		p.Report(validate.Finding{
			Check:   "config-missing",
			Path:    n.Path().Field("cluster_type"),
			Message: fmt.Sprintf("cluster type %q has no typed_config", k.Factory),
			Help:    fmt.Sprintf("add a typed_config of type %s", k.Config),
		})
	case custom.GetTypedConfig() != nil && !p.Envoy.Holds(xds.PayloadType(custom.GetTypedConfig())):
		// reported by unknown-type
	case config != "":
		p.Report(validate.Finding{
			Check:   "not-a-cluster-type",
			Path:    n.Path().Field("cluster_type").Field("typed_config"),
			Message: fmt.Sprintf("%s is not a cluster type", config),
			Help:    "write the configuration of a cluster type, envoy.extensions.clusters.…",
		})
	default:
		var factories []string
		for _, k := range p.Envoy.ClusterKinds() {
			factories = append(factories, k.Factory)
		}
		f := validate.Finding{
			Check:   "unknown-name",
			Path:    n.Path().Field("cluster_type").Field("name"),
			Message: fmt.Sprintf("unknown cluster type %q", custom.GetName()),
			Help:    "write the name of a cluster factory, such as envoy.cluster.static, or add a typed_config",
		}
		candidates := diag.NewCandidates(factories)
		if near := candidates.Nearest(custom.GetName()); near != "" {
			f.Help, f.Correction = "", diag.Correction{Wrong: custom.GetName(), Right: near, Sure: candidates.Misspelt(custom.GetName(), near, xds.IsWord)}
		}
		p.Report(f)
	}
}

func checkDiscovery(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster, k envoyapi.ClusterKind) {
	switch {
	case c.GetClusterType() != nil && k.Factory == "envoy.cluster.eds":
		p.Report(validate.Finding{
			Check:   "eds-in-cluster-type",
			Path:    n.Path().Field("cluster_type"),
			Message: "cluster_type can't be envoy.cluster.eds: Envoy accepts eds_cluster_config with type: EDS only",
			Help:    "write type: EDS instead of cluster_type",
		})
	case c.GetEdsClusterConfig() != nil && c.GetType() != clusterv3.Cluster_EDS:
		p.Report(validate.Finding{
			Check:   "eds-config",
			Path:    n.Path().Field("eds_cluster_config"),
			Message: fmt.Sprintf("a cluster of type %s can't have eds_cluster_config", p.Envoy.ClusterTypeText(c)),
			Help:    "write type: EDS, or remove eds_cluster_config",
		})
	}
}

func checkEndpointsOfType(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster, k envoyapi.ClusterKind) {
	path := n.Path().Field("load_assignment")
	switch {
	case k.Factory == "envoy.cluster.logical_dns":
		checkSingleEndpoint(p, n, c)
	case c.GetLoadAssignment() == nil || k.Inline || k.Factory == "envoy.clusters.dynamic_modules":
	case k.Factory == "envoy.cluster.original_dst" || k.Factory == "envoy.clusters.reverse_connection":
		p.Report(validate.Finding{
			Check:   "load-assignment",
			Path:    path,
			Message: fmt.Sprintf("a cluster of type %s can't have a load_assignment", p.Envoy.ClusterTypeText(c)),
			Help:    "remove it: such a cluster discovers its endpoints itself",
		})
	case endpointCount(c.GetLoadAssignment()) > 0:
		p.Report(validate.Finding{
			Check:   "endpoints-unused",
			Path:    path,
			Message: fmt.Sprintf("a cluster of type %s does not use the endpoints in load_assignment", p.Envoy.ClusterTypeText(c)),
			Help:    "remove them, or set the cluster's type to STATIC",
			Warning: true,
		})
	}
}

// checkSingleEndpoint checks a LOGICAL_DNS cluster, which must have one endpoint.
func checkSingleEndpoint(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	localities, count := len(c.GetLoadAssignment().GetEndpoints()), endpointCount(c.GetLoadAssignment())
	if localities == 1 && count == 1 {
		return
	}
	what := fmt.Sprintf("%d endpoints", count)
	if localities > 1 {
		what = fmt.Sprintf("%d localities", localities)
	}
	p.Report(validate.Finding{
		Check:   "single-endpoint",
		Path:    n.Path().Field("load_assignment").Field("endpoints"),
		Message: "a LOGICAL_DNS cluster has " + what + ", it needs exactly one",
		Help:    "keep one endpoint, the hostname to resolve; for several, set the type to STRICT_DNS",
	})
}

// destinationHeader is implemented by both forms of the settings of ORIGINAL_DST.
type destinationHeader interface {
	GetUseHttpHeader() bool
	GetHttpHeaderName() string
}

func checkDestinationHeader(p *validate.Pass, path xds.Path, m destinationHeader) {
	if m.GetHttpHeaderName() != "" && !m.GetUseHttpHeader() {
		p.Report(validate.Finding{
			Check:   "destination-header",
			Path:    path.Field("http_header_name"),
			Message: fmt.Sprintf("http_header_name %q needs use_http_header", m.GetHttpHeaderName()),
			Help:    "set use_http_header: true, or remove the name",
		})
	}
}
