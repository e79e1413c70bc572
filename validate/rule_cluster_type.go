package validate

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dnsclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/original_dst/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

var clusterType = &Rule{
	Code: "cluster-type",
	Doc: `A cluster's type is unknown, or does not go with its other fields.

cluster_type names a cluster factory of Envoy, by the type of its typed_config or,
without one, by its name: "Didn't find a registered cluster factory
implementation". Some factories do not come without a typed_config, and
envoy.cluster.eds does not come by cluster_type at all. That of Redis needs its own name
as well ("Redis cluster can only created with redis cluster type").

Refused as well: eds_cluster_config on a cluster whose type is not EDS; a
LOGICAL_DNS cluster without exactly one endpoint; a load_assignment on
ORIGINAL_DST, even an empty one, and its http_header_name without
use_http_header. The other types that have no use for load_assignment take it,
and its endpoints get no requests.`,
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.extensions.clusters.dns.v3.DnsCluster",
		"envoy.extensions.clusters.original_dst.v3.OriginalDstCluster",
	},
	Node: func(p *Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			k := kindOf(m)
			if k.factory == "" || k.needsConfig && m.GetClusterType().GetTypedConfig() == nil {
				checkClusterFactory(p, n, m, k)
				return
			}
			if k.factory == redisCluster && m.GetClusterType().GetName() != redisCluster {
				p.Report(Finding{
					Path:    n.Path().Field("cluster_type").Field("name"),
					Message: fmt.Sprintf("cluster type %q with the configuration of %s: Envoy goes by the name too", m.GetClusterType().GetName(), redisCluster),
					Help:    "name it " + redisCluster,
				})
			}
			checkDiscovery(p, n, m, k)
			checkEndpointsOfType(p, n, m, k)
			if k.factory == "envoy.cluster.original_dst" && customConfig(m.GetClusterType()) == "" {
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

func checkClusterFactory(p *Pass, n *xds.Node, c *clusterv3.Cluster, k clusterKind) {
	custom := c.GetClusterType()
	config := customConfig(custom)
	switch {
	case k.needsConfig:
		p.Report(Finding{
			Path:    n.Path().Field("cluster_type"),
			Message: fmt.Sprintf("cluster type %q has no typed_config", k.factory),
			Help:    fmt.Sprintf("give it a typed_config of type %s", k.config),
		})
	case custom.GetTypedConfig() != nil && !inBinary(typeOf(custom.GetTypedConfig())):
		// unknown-type
	case config != "":
		p.Report(Finding{
			Path:    n.Path().Field("cluster_type").Field("typed_config"),
			Message: fmt.Sprintf("%s is no type of cluster", config),
			Help:    "give the configuration of a cluster, envoy.extensions.clusters.…",
		})
	default:
		var factories []string
		for _, k := range clusterKinds {
			factories = append(factories, k.factory)
		}
		f := Finding{
			Path:    n.Path().Field("cluster_type").Field("name"),
			Message: fmt.Sprintf("unknown cluster type %q", custom.GetName()),
			Help:    "without a typed_config the name must be that of a cluster factory of Envoy, such as envoy.cluster.static",
		}
		if near := diag.NewCandidates(factories).Nearest(custom.GetName()); near != "" {
			f.Help = fmt.Sprintf("did you mean %q?", near)
		}
		p.Report(f)
	}
}

func checkDiscovery(p *Pass, n *xds.Node, c *clusterv3.Cluster, k clusterKind) {
	switch {
	case c.GetClusterType() != nil && k.factory == "envoy.cluster.eds":
		p.Report(Finding{
			Path:    n.Path().Field("cluster_type"),
			Message: "cluster type envoy.cluster.eds: Envoy takes eds_cluster_config with type EDS only, and needs one",
			Help:    "write type: EDS instead of cluster_type",
		})
	case c.GetEdsClusterConfig() != nil && c.GetType() != clusterv3.Cluster_EDS:
		p.Report(Finding{
			Path:    n.Path().Field("eds_cluster_config"),
			Message: fmt.Sprintf("eds_cluster_config on a cluster of type %s", kindText(c)),
			Help:    "make the cluster's type EDS, or remove eds_cluster_config",
		})
	}
}

func checkEndpointsOfType(p *Pass, n *xds.Node, c *clusterv3.Cluster, k clusterKind) {
	path := n.Path().Field("load_assignment")
	switch {
	case k.factory == "envoy.cluster.logical_dns":
		checkSingleEndpoint(p, n, c)
	case c.GetLoadAssignment() == nil || k.inline || k.factory == "envoy.clusters.dynamic_modules":
	case k.factory == "envoy.cluster.original_dst" || k.factory == "envoy.clusters.reverse_connection":
		p.Report(Finding{
			Path:    path,
			Message: fmt.Sprintf("a cluster of type %s has a load_assignment", kindText(c)),
			Help:    "remove it: such a cluster finds its endpoints itself",
		})
	case endpointCount(c.GetLoadAssignment()) > 0:
		p.Report(Finding{
			Path:    path,
			Message: fmt.Sprintf("the endpoints in load_assignment are not used by a cluster of type %s", kindText(c)),
			Help:    "remove them, or make the cluster's type STATIC",
			Warning: true,
		})
	}
}

// checkSingleEndpoint checks a cluster whose one name stands for one endpoint.
func checkSingleEndpoint(p *Pass, n *xds.Node, c *clusterv3.Cluster) {
	localities, count := len(c.GetLoadAssignment().GetEndpoints()), endpointCount(c.GetLoadAssignment())
	if localities == 1 && count == 1 {
		return
	}
	what := fmt.Sprintf("%d endpoints", count)
	if localities > 1 {
		what = fmt.Sprintf("%d localities", localities)
	}
	p.Report(Finding{
		Path:    n.Path().Field("load_assignment").Field("endpoints"),
		Message: "a LOGICAL_DNS cluster has " + what + ", Envoy takes exactly one",
		Help:    "it takes exactly one endpoint, the name to look up; with more, make its type STRICT_DNS",
	})
}

func endpointCount(a *endpointv3.ClusterLoadAssignment) (count int) {
	for _, locality := range a.GetEndpoints() {
		count += len(locality.GetLbEndpoints())
	}
	return count
}

// destinationHeader is the settings of ORIGINAL_DST, old and new.
type destinationHeader interface {
	GetUseHttpHeader() bool
	GetHttpHeaderName() string
}

func checkDestinationHeader(p *Pass, path xds.Path, m destinationHeader) {
	if m.GetHttpHeaderName() != "" && !m.GetUseHttpHeader() {
		p.Report(Finding{
			Path:    path.Field("http_header_name"),
			Message: fmt.Sprintf("http_header_name %q without use_http_header", m.GetHttpHeaderName()),
			Help:    "set use_http_header: true, or remove the name",
		})
	}
}
