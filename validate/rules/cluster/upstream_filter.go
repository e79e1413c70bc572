package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var upstreamFilter = &validate.Rule{
	Code: "upstream-filter",
	Doc: `A network filter of a cluster has two configurations.

Envoy rejects the cluster: "Only one of typed_config or config_discovery can be used".`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Filter"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*clusterv3.Filter)
		if n.Field() == "envoy.config.cluster.v3.Cluster.filters" && m.GetTypedConfig() != nil && m.GetConfigDiscovery() != nil {
			p.Report(validate.Finding{
				Path:    n.Path().Field("typed_config"),
				Message: fmt.Sprintf("filter %q has both typed_config and config_discovery", m.GetName()),
				Help:    "keep one of them; default_config of config_discovery can hold the other",
			})
		}
	},
}
