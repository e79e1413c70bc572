package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var perFilterConfig = &validate.Rule{
	Code: "per-filter-config",
	Doc: `The configuration of a filter for a route has the wrong type.

Most HTTP filters have their own message for routes, such as BufferPerRoute for Buffer. Envoy
finds the filter by the type, not by the key. It rejects the route configuration if the message
is not the one for routes ("Unable to unpack as …BufferPerRoute"), if the filter has none ("The
filter router doesn't support virtual host or route specific configurations"), if no filter has
this type ("Didn't find a registered implementation"), and if a FilterConfig has neither
disabled nor config ("Empty route/virtual host per filter configuration"). With is_optional it
accepts the second and third case, without effect.`,
	Checks: []diag.Check{
		{Name: "empty-config", Summary: "A FilterConfig has neither disabled nor config."},
		{Name: "no-route-config", Summary: "Routes can't configure the filter."},
		{Name: "unknown-filter", Summary: "No HTTP filter uses a configuration of this type."},
		{Name: "wrong-type", Summary: "The configuration is that of the filter, not the one for routes."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.RouteConfiguration",
		"envoy.config.route.v3.VirtualHost",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		configs := n.Message.(interface {
			GetTypedPerFilterConfig() map[string]*anypb.Any
		}).GetTypedPerFilterConfig()
		if n.Name() == "envoy.config.route.v3.WeightedCluster.ClusterWeight" && !weighsRoute(n) {
			return
		}
		for key, config := range configs {
			path := func() xds.Path { return n.Path().Field("typed_per_filter_config").Key(key) }
			var wrapper routev3.FilterConfig
			if config.UnmarshalTo(&wrapper) != nil {
				checkPerFilter(p, path, key, config, false)
				continue
			}
			switch inner := wrapper.GetConfig(); {
			case wrapper.GetDisabled():
			case inner == nil:
				p.Report(validate.Finding{
					Check:   "empty-config",
					Path:    path(),
					Message: fmt.Sprintf("the FilterConfig of %q has neither disabled nor config", key),
					Help:    "set disabled: true, or config; config: {} enables the filter",
				})
			case inner.GetTypeUrl() == "": // config: {} enables the filter
			default:
				checkPerFilter(p, func() xds.Path { return path().Field("config") }, key, inner, wrapper.GetIsOptional())
			}
		}
	},
}

func checkPerFilter(p *validate.Pass, path func() xds.Path, key string, config *anypb.Any, optional bool) {
	name := xds.PayloadType(config)
	if !p.Envoy.Holds(name) {
		return // reported by unknown-type
	}
	route, ok := p.Envoy.PerRouteType(name)
	f := validate.Finding{Help: "remove it, or correct its type"}
	switch {
	case !ok && !optional:
		f.Check = "unknown-filter"
		f.Message = fmt.Sprintf("%q has a configuration of type %s, which no HTTP filter uses", key, name)
	case ok && route == "" && !optional:
		f.Check = "no-route-config"
		f.Message = fmt.Sprintf("%q has a configuration of type %s, and that filter can't be configured by routes", key, name)
		f.Help = "configure it in http_filters; here you can only disable it, with a FilterConfig"
	case ok && route != "" && route != name && !fitsEmpty(config, route):
		f.Check = "wrong-type"
		f.Message = fmt.Sprintf("%q has a configuration of type %s, and routes need %s", key, name.Name(), route.Name())
		f.Help = "write \"@type\": " + xds.URLPrefix + string(route)
	default:
		return
	}
	f.Path = path()
	p.Report(f)
}

// fitsEmpty reports whether Envoy accepts a configuration of another type as an empty message of the type that it
// wants: the configuration has no fields, and the empty message breaks no constraint.
func fitsEmpty(config *anypb.Any, want protoreflect.FullName) bool {
	if len(config.GetValue()) > 0 {
		return false
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(want)
	if err != nil {
		return false
	}
	return xds.Constraints(mt.New().Interface()) == nil
}
