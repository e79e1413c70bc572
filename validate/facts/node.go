package facts

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// Enclosing returns the nearest message around the node that has a full name, or nil. The node itself does not
// count.
func Enclosing(n *xds.Node, message protoreflect.FullName) *xds.Node {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.Name() == message {
			return n
		}
	}
	return nil
}

// Inside reports whether the node, or a message around the node, has one of the names, or is in a field with one of
// the names.
func Inside(n *xds.Node, names ...protoreflect.FullName) bool {
	for ; n != nil; n = n.Parent {
		if slices.Contains(names, n.Name()) || slices.Contains(names, n.Field()) {
			return true
		}
	}
	return false
}

// IsPerRoute reports whether the node is in the configuration of an HTTP filter for a route, a virtual host, a
// weighted cluster or a route configuration.
func IsPerRoute(n *xds.Node) bool {
	return n.Parent != nil && n.Parent.Name() == "google.protobuf.Any" && Inside(n,
		"envoy.config.route.v3.Route.typed_per_filter_config",
		"envoy.config.route.v3.RouteConfiguration.typed_per_filter_config",
		"envoy.config.route.v3.VirtualHost.typed_per_filter_config",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config",
	)
}

// InRemovedTracer reports whether the node is in the configuration of a tracer that Envoy no longer has. The rule
// misplaced-extension reports such a tracer.
func InRemovedTracer(n *xds.Node) bool {
	return Inside(n, "envoy.config.trace.v3.LightstepConfig", "envoy.config.trace.v3.TraceServiceConfig")
}

// IsUnread reports whether Envoy never reads the node: the content of typed_filter_metadata, a retry policy by
// Any (no part of Envoy 1.40.0 accepts a type here), or the configuration of a filter that the route disables.
func IsUnread(n *xds.Node) bool {
	for ; n != nil; n = n.Parent {
		switch n.Field() {
		case "envoy.config.core.v3.Metadata.typed_filter_metadata",
			"envoy.config.route.v3.RouteAction.retry_policy_typed_config",
			"envoy.config.route.v3.VirtualHost.retry_policy_typed_config":
			return true
		case "envoy.config.route.v3.FilterConfig.config":
			if f, _ := xds.Enclosing[*routev3.FilterConfig](n); f.GetDisabled() {
				return true
			}
		}
	}
	return false
}
