package grpc

import (
	"fmt"
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var grpcHTTPFilter = &validate.Rule{
	Code: "grpc-http-filter",
	Doc: `gRPC rejects an HTTP filter, a chain of them, or a route's override for one.

gRPC rejects an unknown HTTP filter, and leaves out an unknown filter with is_optional: true.
Clients know fault and router, servers rbac and router. The names of filters must be unique in their
chain. A filter with config_discovery counts as unknown. The last remaining filter must be the
router, and only the last.

A typed_per_filter_config of a virtual host, a route or a weighted cluster must be of a filter
that gRPC knows, or be in a FilterConfig with is_optional: true. The router has no override
(gRFC A39). Clients in C++ also know stateful_session (gRFC A55), clients in Go and Java do not: a
warning.`,
	Checks: []diag.Check{
		{Name: "duplicate-name", Summary: "Two HTTP filters share a name, or a filter lacks a name."},
		{Name: "override", Summary: "gRPC does not know an override, or it is of the router."},
		{Name: "router", Summary: "The HTTP filters do not end with the router."},
		{Name: "stateful-session", Summary: "gRPC in Go and Java does not know stateful_session."},
		{Name: "unknown-filter", Summary: "gRPC does not know an HTTP filter."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.VirtualHost",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *hcmv3.HttpConnectionManager:
			if by := sideOf(n); by != neither {
				checkHTTPFilters(p, n.Path().Field("http_filters"), m.GetHttpFilters(), by)
			}
		case *routev3.VirtualHost:
			checkOverrides(p, n, m.GetTypedPerFilterConfig())
		case *routev3.Route:
			checkOverrides(p, n, m.GetTypedPerFilterConfig())
		case *routev3.WeightedCluster_ClusterWeight:
			checkOverrides(p, n, m.GetTypedPerFilterConfig())
		}
	},
}

const (
	routerType protoreflect.FullName = "envoy.extensions.filters.http.router.v3.Router"
	faultType  protoreflect.FullName = "envoy.extensions.filters.http.fault.v3.HTTPFault"
	// Only the C++ library of gRPC knows sessionType.
	sessionType protoreflect.FullName = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession"
	rbacType    protoreflect.FullName = "envoy.extensions.filters.http.rbac.v3.RBAC"
)

// knownTo reports whether gRPC has an HTTP filter on a side.
func knownTo(by side, config protoreflect.FullName) bool {
	switch config {
	case routerType:
		return true
	case faultType:
		return by == client
	case rbacType:
		return by == server
	}
	return false
}

func checkHTTPFilters(p *validate.Pass, path xds.Path, filters []*hcmv3.HttpFilter, by side) {
	report := func(check validate.CheckName, at xds.Path, what, help string) {
		p.Report(validate.Finding{Check: check, Path: at, Message: "gRPC rejects the listener: " + what, Help: help})
	}
	seen := make(map[string]bool)
	unknown, misplaced, router := false, false, -1 // router is the index of the last filter that gRPC knows, if this filter is the router
	for i, f := range filters {
		at, is := path.Index(i), xds.PayloadType(f.GetTypedConfig())
		switch known := knownTo(by, is); {
		case f.GetName() == "":
			report("duplicate-name", at, "an HTTP filter has no name", "add a name")
		case seen[f.GetName()]:
			report("duplicate-name", at.Field("name"), fmt.Sprintf("two HTTP filters have the name %q", f.GetName()), "rename or remove one of them")
		case is == sessionType && by == client && !f.GetIsOptional():
			p.Report(validate.Finding{
				Check: "stateful-session",
				Path:  at, Warning: true,
				Message: fmt.Sprintf("gRPC in Go and Java rejects the listener: it does not know the HTTP filter %q, "+
					"which holds %s", f.GetName(), typeText(is)),
				Help: "set is_optional: true if there are such clients",
			})
		case !known && !f.GetIsOptional():
			report("unknown-filter", at, fmt.Sprintf("it does not know the HTTP filter %q, "+
				"which holds %s", f.GetName(), typeText(is)), "remove it, or set is_optional: true")
			unknown = true
		case known:
			if router >= 0 {
				misplaced = true
				report("router", path.Index(router), fmt.Sprintf("the router %q is not the last HTTP filter", filters[router].GetName()), "move it to the end")
			}
			router = -1
			if is == routerType {
				router = i
			}
		}
		seen[f.GetName()] = true
	}
	if router < 0 && !unknown && !misplaced {
		report("router", path, "its HTTP filters do not end with the router", "add the filter envoy.filters.http.router")
	}
}

func checkOverrides(p *validate.Pass, n *xds.Node, configs map[string]*anypb.Any) {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		config, optional := configs[name], false
		if wrapped, ok := xds.Unpack(config).(*routev3.FilterConfig); ok {
			config, optional = wrapped.GetConfig(), wrapped.GetIsOptional()
		}
		f := validate.Finding{Check: "override", Path: n.Path().Field("typed_per_filter_config").Key(name)}
		switch is := xds.PayloadType(config); is {
		case faultType, "envoy.extensions.filters.http.rbac.v3.RBACPerRoute":
			continue
		case routerType:
			f.Message, f.Help = "gRPC rejects the route configuration: the router can't be overridden", "remove the override"
		default:
			if optional {
				continue
			}
			f.Message = fmt.Sprintf("gRPC rejects the route configuration: it does not know the override of %q, which holds %s", name, typeText(is))
			f.Help = "remove it, or put it into a FilterConfig with is_optional: true"
		}
		p.Report(f)
	}
}
