package reference

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var unsupportedConfigSource = &validate.Rule{
	Code:     "unsupported-config-source",
	Profiles: validate.Envoy,
	Doc: `A config source uses this snapshot for resources that no file can deliver.

ads and self mean "from this snapshot". For the types of the source tree xdspub replaces them: by
the path of a file, or by how a client of serve gets its resources. Envoy has other subscriptions,
which neither files nor serve answer: filter chain collections (FCDS), routes of Thrift, Dubbo and
generic_proxy, on-demand clusters and certificates, cluster lists of an aggregate cluster, rate
limits of access logs. With files, if ads or self stays there, Envoy rejects it ("Missing config
source specifier", "ADS must be configured"), never gets an answer, or waits: with such an RDS it
was still INITIALIZING after 40 s. With serve it would ask the server, which does not know most of
these types, and meets them with silence, as the protocol says. Clients of gRPC have none of these
subscriptions: with --profile grpc alone the rule does not run.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ConfigSource"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		source := n.Message.(*corev3.ConfigSource)
		if p.Snapshot.FromBootstrap() {
			return // in a bootstrap, ads means Envoy's own ADS
		}
		// The source of a load reporting server belongs to no subscription. xdspub does not replace it.
		if !xds.FromSnapshot(source) || n.Field() == "envoy.config.cluster.v3.Cluster.lrs_server" || answered(n, source) {
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: string(n.Field().Name()) + " uses this snapshot, which can't deliver this type",
			Help:    "use an api_config_source, or write the configuration inline",
		})
	},
}

// answered reports whether a config source belongs to a subscription that xdspub knows. The subscribing message
// holds the source, or holds a message that holds the source.
func answered(n *xds.Node, source *corev3.ConfigSource) bool {
	for at, depth := n.Parent, 0; at != nil && depth < 2; at, depth = at.Parent, depth+1 {
		if s, ok := at.Subscription(); ok && s.Source == source {
			return true
		}
	}
	return false
}
