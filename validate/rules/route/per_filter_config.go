package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/validate"
	"xdspub/xds"
)

var perFilterConfig = &validate.Rule{
	Code: "per-filter-config",
	Doc: `The configuration of a filter for a route has the wrong type.

Most filters have a message of their own for routes, such as BufferPerRoute beside
Buffer. Envoy picks the filter by the type, not by the key, and refuses the route
configuration where the message is the wrong one of a filter ("Unable to unpack as
…BufferPerRoute"), where the filter has none ("The filter router doesn't support
virtual host or route specific configurations"), where the type belongs to no
filter ("Didn't find a registered implementation"), and where a FilterConfig is
neither disabled nor holds a config ("Empty route/virtual host per filter
configuration"). With is_optional the second and third are taken, without effect.`,
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
					Path:    path(),
					Message: fmt.Sprintf("FilterConfig of %q is neither disabled nor has a config", key),
					Help:    "set disabled: true, or config; an empty config, {}, enables the filter",
				})
			case inner.GetTypeUrl() == "": // enables the filter
			default:
				checkPerFilter(p, func() xds.Path { return path().Field("config") }, key, inner, wrapper.GetIsOptional())
			}
		}
	},
}

func checkPerFilter(p *validate.Pass, path func() xds.Path, key string, config *anypb.Any, optional bool) {
	name := xds.PayloadType(config)
	if !p.Envoy.Holds(name) {
		return // unknown-type
	}
	route, ok := p.Envoy.PerRouteType(name)
	f := validate.Finding{Help: "remove it, or correct its type"}
	switch {
	case !ok && !optional:
		f.Message = fmt.Sprintf("%q is configured by %s, which belongs to no HTTP filter", key, name)
	case ok && route == "" && !optional:
		f.Message = fmt.Sprintf("%q is configured by %s, a filter that routes can't configure", key, name)
		f.Help = "configure it in http_filters; here a FilterConfig can disable it"
	case ok && route != "" && route != name && !fitsEmpty(config, route):
		f.Message = fmt.Sprintf("%q is configured by %s, where routes take %s", key, name.Name(), route.Name())
		f.Help = "give it \"@type\": " + xds.URLPrefix + string(route)
	default:
		return
	}
	f.Path = path()
	p.Report(f)
}

// fitsEmpty reports whether a configuration without any field passes as an empty
// message of the type that Envoy wants: then it does not look at the type.
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
