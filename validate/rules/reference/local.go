package reference

import (
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// local is where a name inside one resource is defined.
type local struct {
	noun string
	// defined are the names that count around a node; ok is false where what
	// would define them is not around it.
	defined func(*xds.Node) (names []string, ok bool)
}

var locals = map[protoreflect.FullName]local{
	"envoy.config.cluster.v3.Cluster.typed_extension_protocol_options": {"protocol options key", protocolOptions},
	"envoy.config.overload.v3.Trigger.name":                            {"resource monitor", resourceMonitors},
	"envoy.config.route.v3.RouteAction.cluster_specifier_plugin":       {"cluster specifier plugin", specifierPlugins},

	"envoy.extensions.filters.http.composite.v3.ExecuteFilterAction.filter_chain_name":                      {"named filter chain", namedChains},
	"envoy.extensions.internal_redirect.allow_listed_routes.v3.AllowListedRoutesConfig.allowed_route_names": {"route", routeNames},

	"envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement.provider_name":                    {"JWT provider", jwtProviders},
	"envoy.extensions.filters.http.jwt_authn.v3.ProviderWithAudiences.provider_name":             {"JWT provider", jwtProviders},
	"envoy.extensions.filters.http.jwt_authn.v3.RequirementRule.requirement_name":                {"JWT requirement", jwtRequirements},
	"envoy.extensions.matching.common_inputs.transport_socket.v3.TransportSocketNameAction.name": {"transport socket", transportSockets},
}

// checkLocal checks a name whose target stands around it.
func checkLocal(p *validate.Pass, n *xds.Node, use xds.Use) {
	if l, known := locals[use.Field]; known {
		if names, ok := l.defined(n); ok {
			checkAmong(p, use, l.noun, names)
		}
	}
}

// checkAmong checks that a name is one of those.
func checkAmong(p *validate.Pass, use xds.Use, noun string, names []string) {
	if slices.Contains(names, use.Name) {
		return
	}
	f := validate.Finding{Path: use.Path, Help: "one of " + facts.Quoted(names)}
	if near := diag.NewCandidates(names).Nearest(use.Name); near != "" {
		f.Help, f.Correction = "", diag.Correction{Wrong: use.Name, Right: near}
	} else if len(names) == 0 {
		f.Help = fmt.Sprintf("define the %s", noun)
	}
	f.Message = fmt.Sprintf("unknown %s %q: ", noun, use.Name)
	switch use.OnMissing {
	case xds.Warned:
		f.Message += "Envoy takes the default"
		f.Warning = true
	case xds.Ignored:
		f.Message += "Envoy accepts it, and " + noEffect
		f.Warning = true
	case xds.BreaksTraffic:
		f.Message += "Envoy accepts it, and " + someFail
		f.Warning = true
	default:
		f.Message += p.Resource.Refusal()
	}
	p.Report(f)
}

func specifierPlugins(n *xds.Node) (names []string, ok bool) {
	routes, _ := xds.Enclosing[*routev3.RouteConfiguration](n)
	for _, plugin := range routes.GetClusterSpecifierPlugins() {
		names = append(names, plugin.GetExtension().GetName())
	}
	return names, routes != nil
}

func jwtProviders(n *xds.Node) ([]string, bool) {
	jwt, _ := xds.Enclosing[*jwtv3.JwtAuthentication](n)
	return slices.Sorted(maps.Keys(jwt.GetProviders())), jwt != nil
}

func jwtRequirements(n *xds.Node) ([]string, bool) {
	jwt, _ := xds.Enclosing[*jwtv3.JwtAuthentication](n)
	return slices.Sorted(maps.Keys(jwt.GetRequirementMap())), jwt != nil
}

func transportSockets(n *xds.Node) (names []string, ok bool) {
	cluster, _ := xds.Enclosing[*clusterv3.Cluster](n)
	for _, match := range cluster.GetTransportSocketMatches() {
		names = append(names, match.GetName())
	}
	return names, cluster != nil
}

// namedChains are the filter chains of the composite filter that a matcher is for.
func namedChains(n *xds.Node) ([]string, bool) {
	composite, _ := xds.Enclosing[*compositev3.Composite](n)
	if around, _ := xds.Enclosing[*matchingv3.ExtensionWithMatcher](n); composite == nil && around != nil {
		m, _ := around.GetExtensionConfig().GetTypedConfig().UnmarshalNew()
		composite, _ = m.(*compositev3.Composite)
	}
	return slices.Sorted(maps.Keys(composite.GetNamedFilterChains())), composite != nil
}

// routeNames are the names of the routes around a node, where all of them stand there.
func routeNames(n *xds.Node) (names []string, ok bool) {
	routes, _ := xds.Enclosing[*routev3.RouteConfiguration](n)
	if routes == nil || routes.GetVhds() != nil {
		return nil, false
	}
	for _, host := range routes.GetVirtualHosts() {
		if host.GetMatcher() != nil {
			return nil, false
		}
		for _, r := range host.GetRoutes() {
			if r.GetName() != "" {
				names = append(names, r.GetName())
			}
		}
	}
	return names, true
}

// checkChainAction checks the filter chain that a listener's matcher picks: a
// name by itself in an action.
func checkChainAction(p *validate.Pass, n *xds.Node) {
	name, ok := n.Message.(*wrapperspb.StringValue)
	if !ok {
		return
	}
	action := facts.Enclosing(n, "xds.core.v3.TypedExtensionConfig")
	if action == nil || action.Field() != "xds.type.matcher.v3.Matcher.OnMatch.action" || !facts.Inside(n, "envoy.config.listener.v3.Listener.filter_chain_matcher") {
		return
	}
	listener, _ := xds.Enclosing[*listenerv3.Listener](n)
	if listener.GetFcdsConfig() != nil {
		return
	}
	var names []string
	for _, chain := range listener.GetFilterChains() {
		if chain.GetName() == name.GetValue() {
			return
		}
		names = append(names, chain.GetName())
	}
	p.Report(validate.Finding{
		Path:    n.Path().Field("value"),
		Message: fmt.Sprintf("unknown filter chain %q: Envoy closes the connections that it is picked for", name.GetValue()),
		Help:    "one of " + facts.Quoted(names),
	})
}

func resourceMonitors(n *xds.Node) (names []string, ok bool) {
	manager, _ := xds.Enclosing[*overloadv3.OverloadManager](n)
	for _, monitor := range manager.GetResourceMonitors() {
		names = append(names, monitor.GetName())
	}
	return names, manager != nil
}

// protocolOptions are the keys that Envoy 1.40.0 takes, found by trying every
// extension of its binary.
func protocolOptions(*xds.Node) ([]string, bool) {
	return []string{
		"envoy.extensions.upstreams.http.reverse_tunnel.v3.ReverseTunnelUpstreamCodecOptions",
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
		"envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions",
		"envoy.filters.network.redis_proxy",
		"envoy.filters.network.thrift_proxy",
		"envoy.redis_proxy",
		"envoy.upstreams.http.http_protocol_options",
		"envoy.upstreams.tcp.tcp_protocol_options",
	}, true
}
