package listener

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerFilter = &validate.Rule{
	Code: "listener-filter",
	Doc: `A listener filter does not fit its kind of listener.

A TCP listener has the filters of envoy.filters.listener, a UDP listener those for
datagrams (udp_proxy, dns_filter), a QUIC listener none at all; another one is refused
("Didn't find a registered implementation"). UDP listener filters can't come by
discovery ("configured with unsupported dynamic configuration").

A UDP listener without filters is taken and drops every datagram.`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		checkListenerFilters(p, n.Message.(*listenerv3.Listener))
	},
}

func checkListenerFilters(p *validate.Pass, l *listenerv3.Listener) {
	kind := facts.TransportOf(l)
	if kind == facts.Datagrams && len(l.GetListenerFilters()) == 0 && len(filterChains(l)) == 0 {
		p.Report(validate.Finding{
			Warning: true,
			Message: "UDP listener has no listener_filters: Envoy drops every datagram",
			Help:    "add udp_proxy or dns_filter, or udp_listener_config.quic_options for QUIC",
		})
	}
	for i, f := range l.GetListenerFilters() {
		path := xds.Path("listener_filters").Index(i)
		discovery := f.GetConfigDiscovery()
		switch {
		case kind == facts.LibraryCalls:
		case discovery != nil && kind == facts.Datagrams:
			p.Report(validate.Finding{
				Path:    path.Field("config_discovery"),
				Message: fmt.Sprintf("listener filter %q of a UDP listener can't come by discovery", f.GetName()),
				Help:    "give its typed_config here",
			})
		case discovery != nil && kind == facts.QUIC:
			for j, url := range discovery.GetTypeUrls() {
				checkFilterKind(p, kind, xds.NameInURL(url), path.Field("config_discovery").Field("type_urls").Index(j))
			}
		case f.GetTypedConfig() != nil:
			checkFilterKind(p, kind, xds.PayloadType(f.GetTypedConfig()), path)
		}
	}
}

// checkFilterKind reports a filter of another kind of listener. What is no listener
// filter of any kind stands in the wrong slot.
func checkFilterKind(p *validate.Pass, kind facts.Transport, name protoreflect.FullName, path xds.Path) {
	_, forStreams := p.Envoy.ExtensionOf("envoy.filters.listener", name)
	_, forDatagrams := p.Envoy.ExtensionOf("envoy.filters.udp_listener", name)
	f := validate.Finding{Path: path}
	switch {
	case kind == facts.QUIC && (forStreams || forDatagrams):
		f.Message = fmt.Sprintf("listener filter %s in a QUIC listener", name)
		f.Help = "remove it: Envoy has no listener filters for QUIC"
	case kind == facts.Datagrams && forStreams:
		f.Message = fmt.Sprintf("listener filter %s in a UDP listener", name)
		f.Help = "remove it: it is for connections"
	case kind == facts.Connections && forDatagrams:
		f.Message = fmt.Sprintf("listener filter %s in a listener for connections", name)
		f.Help = "set protocol: UDP in the listener's address"
	default:
		return
	}
	p.Report(f)
}
