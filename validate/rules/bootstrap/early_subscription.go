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

Envoy makes the static clusters first, then its connection for ADS, then static clusters
of type EDS whose endpoints come over the network. What one of the first asks ADS for, a
secret of SDS or a filter of ECDS, ends Envoy by a segmentation fault (signal 11), in
whatever order the clusters stand, with and without ads_config. For the clusters aggregate,
composite and mcp_multicluster its --mode validate says OK, and a live Envoy crashes.

A source of its own (api_config_source of type GRPC, or a file) works, as does ads: {} in
a listener, in a cluster of CDS, and in a static cluster of type EDS with endpoints by ADS
or gRPC.`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.ExtensionConfigSource",
		"envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config",
		"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if p.Resource.DeliveredBy != xds.StaticResources || p.Resource.Type != xds.Cluster || waitsForADS(p.Resource.Message.(*clusterv3.Cluster)) {
			return
		}
		if selector, ok := n.Message.(*ondemandv3.Config); ok && len(selector.GetPrefetchSecretNames()) == 0 {
			return // it asks with the first connection
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
					Message: "a static cluster asks ADS before Envoy has it: Envoy crashes",
					Help:    "give it an api_config_source of type GRPC or a path_config_source, or let the cluster come by CDS",
				})
			}
		}
	},
}

// waitsForADS reports whether Envoy makes a static cluster after its connection for ADS.
func waitsForADS(c *clusterv3.Cluster) bool {
	return c.GetClusterType() == nil && c.GetType() == clusterv3.Cluster_EDS && xds.PathOf(c.GetEdsClusterConfig().GetEdsConfig()) == ""
}
