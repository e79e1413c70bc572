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

A TCP or QUIC listener needs filter_chains or a default_filter_chain ("no filter chains
specified"). A plain UDP listener has no connections: it must have no filter chains, and uses
listener_filters ("filter chain(s) specified for connection-less UDP listener"). A listener
that gets its filter chains by discovery needs a filter_chain_matcher ("FCDS requires a filter
chain matcher").`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		kind, chains := facts.TransportOf(l), filterChains(l)
		switch {
		case kind == facts.LibraryCalls:
		case kind == facts.Datagrams && len(chains) > 0:
			p.Report(validate.Finding{
				Path:    chains[0].path,
				Message: "a UDP listener can't have filter chains: it has no connections",
				Help:    "use listener_filters with udp_proxy or dns_filter, or udp_listener_config.quic_options for QUIC",
			})
		case l.GetFcdsConfig() != nil:
			if l.GetFilterChainMatcher() == nil {
				p.Report(validate.Finding{
					Path:    "fcds_config",
					Message: "filter chain discovery needs a filter_chain_matcher",
					Help:    "add a filter_chain_matcher, which selects the chains by name",
				})
			}
		case kind != facts.Datagrams && len(chains) == 0:
			p.Report(validate.Finding{
				Path:    n.Path(),
				Message: "the listener has no filter chains",
				Help:    "add filter_chains or a default_filter_chain",
			})
		}
	},
}
