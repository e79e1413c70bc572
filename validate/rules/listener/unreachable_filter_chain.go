package listener

import (
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unreachableFilterChain = &validate.Rule{
	Code:     "unreachable-filter-chain",
	Severity: diag.Warning,
	Doc: `No connection reaches a filter chain, or it gets TLS that it can't decrypt.

server_names and transport_protocol: tls need the listener filter tls_inspector;
application_protocols need tls_inspector or http_inspector. Without it these criteria never
match, and Envoy closes the connection or selects another chain. On QUIC no listener filter is
needed, and the transport_protocol is quic.

A filter chain for TLS without a transport socket gets the encrypted bytes: tcp_proxy passes
them on, an http_connection_manager answers 400.`,
	Checks: []diag.Check{
		{Name: "inspector-missing", Summary: "A chain or an input needs a listener filter that the listener does not have."},
		{Name: "tls-without-socket", Summary: "A chain for TLS has no transport socket."},
		{Name: "transport-protocol", Summary: "No connection of the listener has the transport_protocol."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.listener.v3.Listener",
		"envoy.extensions.matching.common_inputs.network.v3.ApplicationProtocolInput",
		"envoy.extensions.matching.common_inputs.network.v3.ServerNameInput",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		l, isListener := n.Message.(*listenerv3.Listener)
		if isListener {
			if l.GetFilterChainMatcher() == nil {
				checkReach(p, l)
			}
			return
		}
		l, _ = xds.Enclosing[*listenerv3.Listener](n)
		if !facts.Inside(n, "envoy.config.listener.v3.Listener.filter_chain_matcher") {
			return
		}
		needs := serverNamesNeed
		if n.Name().Name() == "ApplicationProtocolInput" {
			needs = protocolsNeed
		}
		if facts.TransportOf(l) == facts.Connections && !finds(l, needs.filters) {
			p.Report(validate.Finding{
				Check:   "inspector-missing",
				Path:    n.Path(),
				Message: fmt.Sprintf("%s is always empty: the listener has no %s", n.Name().Name(), needs.filters[0].name),
				Help:    needs.help(),
			})
		}
	},
}

// inspector is a listener filter that detects a property of connections.
type inspector struct {
	name string
	typ  protoreflect.FullName
}

var (
	tlsInspector  = inspector{"tls_inspector", "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
	httpInspector = inspector{"http_inspector", "envoy.extensions.filters.listener.http_inspector.v3.HttpInspector"}
)

// need lists the listener filters that detect a criterion. A listener with the criterion needs one of them.
type need struct{ filters []inspector }

var (
	serverNamesNeed = need{[]inspector{tlsInspector}}
	protocolsNeed   = need{[]inspector{tlsInspector, httpInspector}}
)

func (n need) help() string {
	return fmt.Sprintf("add envoy.filters.listener.%s to listener_filters", n.filters[0].name)
}

// finds reports whether the listener has one of the filters, or a filter that may detect anything.
func finds(l *listenerv3.Listener, filters []inspector) bool {
	if l.GetInternalListener() != nil {
		return true // an internal connection may have the property already
	}
	return slices.ContainsFunc(l.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool {
		if f.GetTypedConfig() == nil {
			return true
		}
		name := xds.PayloadType(f.GetTypedConfig())
		return name == "envoy.extensions.filters.listener.dynamic_modules.v3.DynamicModuleListenerFilter" ||
			slices.ContainsFunc(filters, func(i inspector) bool { return i.typ == name })
	})
}

func checkReach(p *validate.Pass, l *listenerv3.Listener) {
	var lacking []*validate.Finding // at most one finding for each missing listener filter
	for i, c := range l.GetFilterChains() {
		m, at := c.GetFilterChainMatch(), xds.Path("filter_chains").Index(i).Field("filter_chain_match")
		protocol := m.GetTransportProtocol()
		f := validate.Finding{}
		switch facts.TransportOf(l) {
		case facts.QUIC:
			if protocol == "" || protocol == "quic" {
				continue
			}
			f.Path = at.Field("transport_protocol")
			f.Check = "transport-protocol"
			f.Message = fmt.Sprintf("transport_protocol %q never matches in a QUIC listener", protocol)
			f.Help = "remove it"
		case facts.Connections:
			if f = lacksInspector(l, c, at); f.Message != "" {
				same := slices.IndexFunc(lacking, func(first *validate.Finding) bool { return first.Help == f.Help })
				if same < 0 {
					lacking = append(lacking, &f)
				} else {
					lacking[same].Related = append(lacking[same].Related, facts.Related(p.Resource, f.Path, "this never matches either")...)
				}
				continue
			}
			if f = unmatched(l, c, at); f.Message == "" {
				continue
			}
		default:
			continue
		}
		p.Report(f)
	}
	for _, f := range lacking {
		p.Report(*f)
	}
}

// lacksInspector returns a finding about a criterion of a chain that never matches, because the listener has no
// filter that detects the property. It returns the zero Finding for a chain without a fault.
func lacksInspector(l *listenerv3.Listener, c *listenerv3.FilterChain, at xds.Path) validate.Finding {
	m := c.GetFilterChainMatch()
	never := func(field string, n need) validate.Finding {
		return validate.Finding{
			Check:   "inspector-missing",
			Path:    at.Field(field),
			Message: fmt.Sprintf("%s never matches: the listener has no %s", field, n.filters[0].name),
			Help:    n.help(),
		}
	}
	switch {
	case len(m.GetServerNames()) > 0 && !finds(l, serverNamesNeed.filters):
		return never("server_names", serverNamesNeed)
	case m.GetTransportProtocol() == "tls" && !finds(l, serverNamesNeed.filters):
		return never("transport_protocol", serverNamesNeed)
	case len(m.GetApplicationProtocols()) > 0 && !finds(l, protocolsNeed.filters):
		return never("application_protocols", protocolsNeed)
	}
	return validate.Finding{}
}

// unmatched returns a finding about a criterion of a chain that no connection of the listener matches. It returns
// the zero Finding for a chain without a fault.
func unmatched(l *listenerv3.Listener, c *listenerv3.FilterChain, at xds.Path) validate.Finding {
	m := c.GetFilterChainMatch()
	protocol := m.GetTransportProtocol()
	forTLS := len(m.GetServerNames()) > 0 || protocol == "tls"
	switch {
	case protocol == "quic":
		return validate.Finding{
			Check:   "transport-protocol",
			Path:    at.Field("transport_protocol"),
			Message: `transport_protocol "quic" matches in QUIC listeners only`,
			Help:    "remove it",
		}
	case forTLS && c.GetTransportSocket() == nil && endsInHTTP(c):
		return validate.Finding{
			Check:   "tls-without-socket",
			Path:    at,
			Message: "the filter chain for TLS has no transport socket: http_connection_manager gets encrypted bytes and answers 400",
			Help:    "add a transport_socket with DownstreamTlsContext",
		}
	}
	return validate.Finding{}
}

func endsInHTTP(c *listenerv3.FilterChain) bool {
	if len(c.GetFilters()) == 0 {
		return false
	}
	last := c.GetFilters()[len(c.GetFilters())-1].GetTypedConfig()
	return last != nil && xds.PayloadType(last).Name() == "HttpConnectionManager"
}
