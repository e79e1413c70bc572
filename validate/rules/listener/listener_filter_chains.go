package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerFilterChains = &validate.Rule{
	Code: "listener-filter-chains",
	Doc: `A listener's filter chains are missing or not allowed.

A listener for connections needs filter_chains or a default_filter_chain ("no
filter chains specified"), one for QUIC as well. A plain UDP listener has no
connections and works by its listener_filters ("filter chain(s) specified for
connection-less UDP listener"). A listener whose filter chains come by discovery needs
a filter_chain_matcher ("FCDS requires a filter chain matcher").`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		kind, chains := facts.TransportOf(l), filterChains(l)
		switch {
		case kind == facts.LibraryCalls:
		case kind == facts.Datagrams && len(chains) > 0:
			p.Report(validate.Finding{
				Path:    chains[0].path,
				Message: "a UDP listener has no connections, and can have no filter chains",
				Help:    "use listener_filters with udp_proxy or dns_filter, or udp_listener_config.quic_options for QUIC",
			})
		case l.GetFcdsConfig() != nil:
			if l.GetFilterChainMatcher() == nil {
				p.Report(validate.Finding{
					Path:    "fcds_config",
					Message: "filter chains by discovery without a filter_chain_matcher",
					Help:    "add the filter_chain_matcher that picks them by name",
				})
			}
		case kind != facts.Datagrams && len(chains) == 0:
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: "listener has no filter chains",
				Help:    "add filter_chains or a default_filter_chain",
			})
		}
	},
}
