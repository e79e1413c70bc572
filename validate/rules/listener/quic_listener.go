package listener

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var quicListener = &validate.Rule{
	Code: "quic-listener",
	Doc: `A listener's QUIC options, transport socket and codec do not match.

A listener with udp_listener_config.quic_options is a QUIC listener. Each of its filter chains
needs a QuicDownstreamTransport ("no transport socket specified for connection oriented UDP
listener", "wrong transport socket config"), and as its last filter an
http_connection_manager by its own type ("requires http_connection_manager filter to be last
in the chain"; neither a TypedStruct nor config_discovery works), with codec_type HTTP3
("Non-HTTP/3 codec configured on QUIC listener").

On any other listener, and in an http_connection_manager by discovery, Envoy rejects
codec_type HTTP3 ("HTTP/3 codec configured on non-QUIC listener"). It accepts
QuicDownstreamTransport on TCP, where no handshake succeeds.`,
	Checks: []diag.Check{
		{Name: "codec", Summary: "The codec_type does not fit the listener."},
		{Name: "last-filter", Summary: "A QUIC listener does not end with an http_connection_manager."},
		{Name: "no-filters", Summary: "A filter chain of a QUIC listener has no filters."},
		{Name: "quic-on-tcp", Summary: "A listener without QUIC has QuicDownstreamTransport."},
		{Name: "transport-socket", Summary: "A filter chain of a QUIC listener has no QUIC transport socket."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.listener.v3.Listener",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *listenerv3.Listener:
			for _, c := range filterChains(m) {
				switch facts.TransportOf(m) {
				case facts.QUIC:
					checkQUICChain(p, c)
				case facts.Connections:
					checkNoQUIC(p, c)
				}
			}
		case *hcmv3.HttpConnectionManager:
			checkCodec(p, n, m)
		}
	},
}

const quicTransport = "envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport"

func checkQUICChain(p *validate.Pass, c placedChain) {
	socket := c.GetTransportSocket()
	switch {
	case socket == nil:
		p.Report(validate.Finding{
			Check:   "transport-socket",
			Path:    c.path,
			Message: "the filter chain of a QUIC listener has no transport socket",
			Help:    "add a transport_socket with QuicDownstreamTransport",
		})
	case socket.GetTypedConfig() != nil && xds.PayloadType(socket.GetTypedConfig()) != quicTransport:
		p.Report(validate.Finding{
			Check:   "transport-socket",
			Path:    c.path.Field("transport_socket"),
			Message: fmt.Sprintf("a QUIC listener can't have the transport socket %s", xds.PayloadType(socket.GetTypedConfig()).Name()),
			Help:    "use QuicDownstreamTransport, which contains the DownstreamTlsContext",
		})
	}
	if len(c.GetFilters()) == 0 {
		p.Report(validate.Finding{
			Check:   "no-filters",
			Path:    c.path,
			Message: "the filter chain of a QUIC listener has no filters",
			Help:    "add an http_connection_manager",
		})
		return
	}
	last := len(c.GetFilters()) - 1
	f := c.GetFilters()[last]
	if f.GetTypedConfig() != nil {
		if ends, _ := facts.NetworkChain.Ends(p.Envoy, facts.FilterConfig{Any: f.GetTypedConfig()}); !ends {
			return // reported by terminal-filter
		}
	}
	if f.GetTypedConfig().GetTypeUrl() != xds.URLPrefix+"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager" {
		p.Report(validate.Finding{
			Check:   "last-filter",
			Path:    c.path.Field("filters").Index(last),
			Message: fmt.Sprintf("the last network filter of a QUIC listener must be an http_connection_manager, and is %q", f.GetName()),
			Help:    "end the chain with an http_connection_manager in typed_config, without TypedStruct and config_discovery",
		})
	}
}

func checkNoQUIC(p *validate.Pass, c placedChain) {
	if a := c.GetTransportSocket().GetTypedConfig(); a != nil && xds.PayloadType(a) == quicTransport {
		p.Report(validate.Finding{
			Check: "quic-on-tcp",
			Path:  c.path.Field("transport_socket"), Warning: true,
			Message: "QuicDownstreamTransport needs a QUIC listener: here no handshake succeeds",
			Help:    "use DownstreamTlsContext, or set protocol: UDP and add udp_listener_config.quic_options",
		})
	}
}

func checkCodec(p *validate.Pass, n *xds.Node, m *hcmv3.HttpConnectionManager) {
	f := validate.Finding{Path: n.Path().Field("codec_type")}
	isHTTP3 := m.GetCodecType() == hcmv3.HttpConnectionManager_HTTP3
	l, _ := xds.Enclosing[*listenerv3.Listener](n)
	_, discovered := p.Resource.Message().(*corev3.TypedExtensionConfig)
	switch {
	case l == nil && !discovered:
		return
	case l != nil && facts.TransportOf(l) == facts.QUIC && !isHTTP3:
		f.Check = "codec"
		f.Message = fmt.Sprintf("a QUIC listener can't have codec_type %s", m.GetCodecType())
		f.Help = "set codec_type: HTTP3"
	case l.GetUdpListenerConfig().GetQuicOptions() != nil:
		return // listener-options reports quic_options on TCP
	case isHTTP3 && (l == nil || facts.TransportOf(l) == facts.Connections):
		f.Check = "codec"
		f.Message = "codec_type HTTP3 needs a QUIC listener"
		f.Help = "set codec_type: AUTO, or set protocol: UDP and add udp_listener_config.quic_options"
	default:
		return
	}
	p.Report(f)
}
