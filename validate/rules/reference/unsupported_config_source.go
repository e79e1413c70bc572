package reference

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var unsupportedConfigSource = &validate.Rule{
	Code: "unsupported-config-source",
	Doc: `A config source uses this snapshot for something that files can't deliver.

ads and self mean "from this snapshot". For the types of the source tree that
becomes the path of a file. Envoy has other subscriptions: endpoint and filter
chain collections (LEDS, FCDS), routes of Thrift, Dubbo and the generic proxy,
clusters on demand, certificates on demand, aggregate cluster lists, rate limits
of access logs. There ads or self would reach Envoy as they stand: refused
("Missing config source specifier", "ADS must be configured"), taken and never
answered, or waited for: with an RDS that way Envoy was still INITIALIZING after
40 s.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.ConfigSource"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		source := n.Message.(*corev3.ConfigSource)
		if p.Snapshot.FromBootstrap() {
			return // there ads is Envoy's own
		}
		// A load reporting server is no subscription: Envoy takes it as it is.
		if !xds.FromSnapshot(source) || n.Field() == "envoy.config.cluster.v3.Cluster.lrs_server" || answered(n, source) {
			return
		}
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: string(n.Field().Name()) + " asks for what files can't answer",
			Help:    "use an api_config_source of your own here, or write the configuration in place",
		})
	},
}

// answered reports whether a config source belongs to a subscription of a type in
// the table. It stands in the message that subscribes, or one below it.
func answered(n *xds.Node, source *corev3.ConfigSource) bool {
	for at, depth := n.Parent, 0; at != nil && depth < 2; at, depth = at.Parent, depth+1 {
		if s, ok := at.Subscription(); ok && s.Source == source {
			return true
		}
	}
	return false
}
