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

A TCP listener supports the filters of envoy.filters.listener, a UDP listener those of
envoy.filters.udp_listener (udp_proxy, dns_filter), a QUIC listener none. Envoy rejects any
other ("Didn't find a registered implementation"). UDP listener filters do not support
config_discovery ("configured with unsupported dynamic configuration").

Envoy accepts a UDP listener without filters, and drops every datagram (a warning).`,
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
			Message: "the UDP listener has no listener_filters: Envoy drops every datagram",
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
				Message: fmt.Sprintf("listener filter %q of a UDP listener can't use config_discovery", f.GetName()),
				Help:    "write its typed_config here",
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

// checkFilterKind reports a listener filter that is for another kind of listener. The rule misplaced-extension
// reports a type that is no listener filter.
func checkFilterKind(p *validate.Pass, kind facts.Transport, name protoreflect.FullName, path xds.Path) {
	_, forStreams := p.Envoy.ExtensionOf("envoy.filters.listener", name)
	_, forDatagrams := p.Envoy.ExtensionOf("envoy.filters.udp_listener", name)
	f := validate.Finding{Path: path}
	switch {
	case kind == facts.QUIC && (forStreams || forDatagrams):
		f.Message = fmt.Sprintf("a QUIC listener can't have the listener filter %s", name)
		f.Help = "remove it: QUIC listeners do not support listener filters"
	case kind == facts.Datagrams && forStreams:
		f.Message = fmt.Sprintf("a UDP listener can't have the listener filter %s", name)
		f.Help = "remove it: this filter is for TCP listeners"
	case kind == facts.Connections && forDatagrams:
		f.Message = fmt.Sprintf("a TCP listener can't have the UDP listener filter %s", name)
		f.Help = "set protocol: UDP in the listener's address"
	default:
		return
	}
	p.Report(f)
}
