package grpc

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var grpcListener = &validate.Rule{
	Code: "grpc-listener",
	Doc: `gRPC rejects a listener.

A gRPC client asks for the listener that has the name in its target, xds:///NAME. It needs an
api_listener with an HttpConnectionManager, which has a route_config, or an rds whose config source
is ads or self. A gRPC server asks for a listener with its own address. The listener has a
socket_address and filter_chains, and each filter is an HttpConnectionManager.

gRPC rejects xff_num_trusted_hops and original_ip_detection_extensions, and on a server
listener_filters and use_original_dst. A server drops a filter chain that matches by
destination_port, server_names, application_protocols or a transport_protocol other than
raw_buffer (a warning), and rejects a listener in which no chain is left (gRFC A36, A41).`,
	Checks: []diag.Check{
		{Name: "address", Summary: "A listener has neither an api_listener nor a socket_address."},
		{Name: "api-listener", Summary: "An api_listener has no HttpConnectionManager."},
		{Name: "dropped-chain", Summary: "gRPC drops a filter chain because of what it matches by."},
		{Name: "network-filter", Summary: "A network filter is not an HttpConnectionManager, or has no name of its own."},
		{Name: "no-chain", Summary: "A gRPC server can't use any filter chain."},
		{Name: "routes", Summary: "The HttpConnectionManager has no routes that gRPC gets."},
		{Name: "server-option", Summary: "A gRPC server does not support an option of the listener."},
		{Name: "trusted-hops", Summary: "gRPC rejects a setting that finds the address of the client."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.listener.v3.Listener",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *listenerv3.Listener:
			if api := m.GetApiListener(); api == nil {
				checkServerListener(p, m)
			} else if is := xds.PayloadType(api.GetApiListener()); is != managerType {
				p.Report(validate.Finding{
					Check:   "api-listener",
					Path:    "api_listener.api_listener",
					Message: fmt.Sprintf("gRPC rejects the listener: api_listener holds %s", typeText(is)),
					Help:    "write an HttpConnectionManager",
				})
			}
		case *hcmv3.HttpConnectionManager:
			if sideOf(n) != neither {
				checkManager(p, n.Path(), m)
			}
		}
	},
}

func checkServerListener(p *validate.Pass, l *listenerv3.Listener) {
	report := func(check validate.CheckName, path xds.Path, what, help string) {
		p.Report(validate.Finding{Check: check, Path: path, Message: "gRPC rejects the listener: " + what, Help: help})
	}
	if len(l.GetListenerFilters()) > 0 {
		report("server-option", "listener_filters", "a gRPC server has no listener filters", "remove them; for a gRPC client, write an api_listener")
	}
	if l.GetUseOriginalDst().GetValue() {
		report("server-option", "use_original_dst", "a gRPC server does not support use_original_dst", "remove it")
	}
	if l.GetAddress().GetSocketAddress() == nil {
		report("address", "address", "it has neither an api_listener, as a gRPC client needs, nor a socket_address, as a gRPC server needs", "add one of them")
	}
	left := l.GetDefaultFilterChain() != nil
	for i, chain := range l.GetFilterChains() {
		path := xds.Path("filter_chains").Index(i)
		field := unmatchable(chain.GetFilterChainMatch())
		if field == "" {
			left = true
			checkFilters(report, path, chain)
			continue
		}
		p.Report(validate.Finding{
			Check: "dropped-chain",
			Path:  path.Field("filter_chain_match").Field(field), Warning: true,
			Message: fmt.Sprintf("gRPC drops the filter chain, because it matches by %s", field),
			Help:    "remove this match, or the filter chain",
		})
	}
	if dfc := l.GetDefaultFilterChain(); dfc != nil {
		checkFilters(report, "default_filter_chain", dfc)
	}
	if !left {
		report("no-chain", "filter_chains", "a gRPC server can't use any of its filter chains", "add a filter chain with an HttpConnectionManager")
	}
}

func checkFilters(report func(validate.CheckName, xds.Path, string, string), path xds.Path, chain *listenerv3.FilterChain) {
	path = path.Field("filters")
	if len(chain.GetFilters()) == 0 {
		report("network-filter", path, "a filter chain has no HttpConnectionManager", "add one")
	}
	seen := make(map[string]bool)
	for i, f := range chain.GetFilters() {
		at := path.Index(i)
		switch is := xds.PayloadType(f.GetTypedConfig()); {
		case f.GetName() == "":
			report("network-filter", at, "a network filter has no name", "add a name")
		case seen[f.GetName()]:
			report("network-filter", at.Field("name"), fmt.Sprintf("two network filters of the chain "+
				"have the name %q", f.GetName()), "rename or remove one of them")
		case is != managerType:
			report("network-filter", at, fmt.Sprintf("the network filter %q holds %s", f.GetName(), typeText(is)),
				"remove it: gRPC knows HttpConnectionManager alone")
		}
		seen[f.GetName()] = true
	}
}

func checkManager(p *validate.Pass, path xds.Path, m *hcmv3.HttpConnectionManager) {
	report := func(check validate.CheckName, field, what, help string) {
		at := path
		if field != "" {
			at = path.Field(field)
		}
		p.Report(validate.Finding{Check: check, Path: at, Message: "gRPC rejects the listener: " + what, Help: help})
	}
	if m.GetXffNumTrustedHops() != 0 {
		report("trusted-hops", "xff_num_trusted_hops", "xff_num_trusted_hops is not 0", "remove it")
	}
	if len(m.GetOriginalIpDetectionExtensions()) > 0 {
		report("trusted-hops", "original_ip_detection_extensions", "it has original_ip_detection_extensions", "remove them")
	}
	switch routes := m.GetRouteSpecifier().(type) {
	case *hcmv3.HttpConnectionManager_RouteConfig:
	case *hcmv3.HttpConnectionManager_Rds:
		if !xds.FromSnapshot(routes.Rds.GetConfigSource()) {
			p.Report(validate.Finding{
				Check:   "routes",
				Path:    path.Field("rds").Field("config_source"),
				Message: "gRPC rejects the listener: it gets routes by ads or self alone",
				Help:    "write config_source: {ads: {}}",
			})
		}
		if routes.Rds.GetRouteConfigName() == "" {
			report("routes", "rds", "rds has no route_config_name", "name a route configuration")
		}
	case *hcmv3.HttpConnectionManager_ScopedRoutes:
		report("routes", "scoped_routes", "gRPC does not support scoped_routes", "write rds or route_config")
	default:
		report("routes", "", "the HttpConnectionManager has no routes", "add rds or route_config")
	}
}
