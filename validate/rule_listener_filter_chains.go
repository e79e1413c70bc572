package validate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var listenerFilterChains = &Rule{
	Code: "listener-filter-chains",
	Doc: `A listener lacks filter chains, or has some where it can't.

A listener for connections needs filter_chains or a default_filter_chain ("no
filter chains specified"), one for QUIC as well. A plain UDP listener has no
connections and works by its listener_filters ("filter chain(s) specified for
connection-less UDP listener").`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		if l.GetApiListener() != nil || l.GetFcdsConfig() != nil {
			return
		}
		datagrams := l.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP && l.GetUdpListenerConfig().GetQuicOptions() == nil
		chains := len(l.GetFilterChains()) > 0 || l.GetDefaultFilterChain() != nil
		switch {
		case datagrams && chains:
			p.Report(Finding{
				Path:    n.Path().Field("filter_chains"),
				Message: "a UDP listener has no connections, and can have no filter chains",
				Help:    "use listener_filters with udp_proxy or dns_filter, or udp_listener_config.quic_options for QUIC",
			})
		case !datagrams && !chains:
			p.Report(Finding{
				Path:    n.Path(),
				Message: "listener has no filter chains",
				Help:    "add filter_chains or a default_filter_chain",
			})
		}
	},
}
