package bootstrap

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var earlySubscription = &validate.Rule{
	Code:     "early-subscription",
	Severity: diag.Error,
	Doc: `A static cluster needs ADS before Envoy has set it up, and Envoy crashes.

Envoy creates static clusters first, then its ADS connection, then static EDS clusters
whose endpoints come over the network. If one of the first clusters asks ADS for an SDS
secret or an ECDS filter, Envoy ends with a segmentation fault (signal 11), in whatever
order the clusters are written, with or without ads_config. For aggregate, composite and
mcp_multicluster clusters envoy --mode validate reports OK, and a running Envoy crashes.

What works: an api_config_source of type GRPC, a file, ads: {} in a listener or in a CDS
cluster, and ads: {} in a static EDS cluster whose endpoints come by ADS or gRPC.`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.ExtensionConfigSource",
		"envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config",
		"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if p.Resource.DeliveredBy != xds.StaticResources || p.Resource.Type != xds.Cluster || waitsForADS(p.Resource.Message().(*clusterv3.Cluster)) {
			return
		}
		if selector, ok := n.Message.(*ondemandv3.Config); ok && len(selector.GetPrefetchSecretNames()) == 0 {
			return // the filter asks for secrets at the first connection
		}
		for _, field := range []protoreflect.Name{"config_source", "sds_config"} {
			m := n.Message.ProtoReflect()
			fd := m.Descriptor().Fields().ByName(field)
			if fd == nil {
				continue
			}
			if source, ok := m.Get(fd).Message().Interface().(*corev3.ConfigSource); ok && source.GetAds() != nil {
				p.Report(validate.Finding{
					Path:    n.Path().Field(string(field)).Field("ads"),
					Message: "a static cluster uses ADS before Envoy has set it up: Envoy crashes",
					Help:    "use an api_config_source of type GRPC or a path_config_source, or deliver the cluster by CDS",
				})
			}
		}
	},
}

// waitsForADS reports whether Envoy creates a static cluster after its ADS connection.
func waitsForADS(c *clusterv3.Cluster) bool {
	return c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_EDS && xds.PathOf(c.GetEdsClusterConfig().GetEdsConfig()) == ""
}
