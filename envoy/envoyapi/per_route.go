package envoyapi

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// PerRouteType returns the type as which Envoy reads a configuration of an HTTP filter in a route. name is the type
// of the configuration in the source. The result is empty if routes can't configure the filter. ok is false if name
// is no configuration of an HTTP filter.
func (v *Version) PerRouteType(name protoreflect.FullName) (route protoreflect.FullName, ok bool) {
	route, ok = v.tables().perRoute[name]
	return route, ok
}

func (r *reader) perRouteTypes(file string) map[protoreflect.FullName]protoreflect.FullName {
	types := make(map[protoreflect.FullName]protoreflect.FullName)
	for _, words := range r.rows(file, 2) {
		name := protoreflect.FullName(words[0])
		switch words[1] {
		case "=":
			types[name] = name
		case "-":
			types[name] = ""
		default:
			types[name] = name.Parent().Append(protoreflect.Name(words[1]))
		}
		if newIn().routes[types[name]] > r.release {
			types[name] = ""
		}
	}
	return types
}

// IsReadAsAnother reports whether the node is a configuration of a filter in a route that Envoy unpacks as another
// type, or that routes can't have. A rule reports such a configuration.
func (v *Version) IsReadAsAnother(n *xds.Node) bool {
	switch n.Field() {
	case "envoy.config.route.v3.FilterConfig.config",
		"envoy.config.route.v3.Route.typed_per_filter_config",
		"envoy.config.route.v3.RouteConfiguration.typed_per_filter_config",
		"envoy.config.route.v3.VirtualHost.typed_per_filter_config",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight.typed_per_filter_config":
		route, ok := v.PerRouteType(n.Name())
		return ok && route != n.Name()
	}
	return false
}
