package reference

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// local describes references to names that the same resource defines.
type local struct {
	noun string
	// around returns the message around a node that defines the names, and a function that returns the names. ok is
	// false if the names are unknown. definer is nil if the node has no such message around it.
	around func(*xds.Node) (definer proto.Message, find func() (names []string, ok bool))
}

var locals = map[protoreflect.FullName]local{
	"envoy.config.overload.v3.Trigger.name":                      {"resource monitor", in(resourceMonitors)},
	"envoy.config.route.v3.RouteAction.cluster_specifier_plugin": {"cluster specifier plugin", in(specifierPlugins)},

	"envoy.extensions.filters.http.composite.v3.ExecuteFilterAction.filter_chain_name":                      {"named filter chain", namedChains},
	"envoy.extensions.internal_redirect.allow_listed_routes.v3.AllowListedRoutesConfig.allowed_route_names": {"route", in(routeNames)},

	"envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement.provider_name":                    {"JWT provider", in(jwtProviders)},
	"envoy.extensions.filters.http.jwt_authn.v3.ProviderWithAudiences.provider_name":             {"JWT provider", in(jwtProviders)},
	"envoy.extensions.filters.http.jwt_authn.v3.RequirementRule.requirement_name":                {"JWT requirement", in(jwtRequirements)},
	"envoy.extensions.matching.common_inputs.transport_socket.v3.TransportSocketNameAction.name": {"transport socket", in(transportSockets)},
}

// in returns a local.around for names that a message of type M defines.
func in[M proto.Message](find func(M) (names []string, ok bool)) func(*xds.Node) (proto.Message, func() ([]string, bool)) {
	return func(n *xds.Node) (proto.Message, func() ([]string, bool)) {
		m, at := xds.Enclosing[M](n)
		if at == nil {
			return nil, nil
		}
		return m, func() ([]string, bool) { return find(m) }
	}
}

// defined holds the names that a reference may use.
type defined struct {
	list []string
	has  map[string]bool
	ok   bool // the names are known

	candidates func() *diag.Candidates
}

func newDefined(list []string, ok bool) *defined {
	d := &defined{list: list, has: make(map[string]bool, len(list)), ok: ok}
	for _, name := range list {
		d.has[name] = true
	}
	d.candidates = sync.OnceValue(func() *diag.Candidates { return diag.NewCandidates(list) })
	return d
}

// definedBy is the key for validate.Once of the names that a message defines. filter is the name of an HTTP filter
// if definer is a connection manager.
type definedBy struct {
	definer      proto.Message
	noun, filter string
}

// checkLocal checks a reference to a name that the same resource defines.
func checkLocal(p *validate.Pass, n *xds.Node, use xds.Use) {
	if use.Field == "envoy.config.cluster.v3.Cluster.typed_extension_protocol_options" {
		keys := validate.Once(p, definedBy{noun: "protocol options key"}, func() *defined { return newDefined(p.Envoy.ProtocolOptionsKeys(), true) })
		checkAmong(p, use, "protocol options key", keys)
		return
	}
	l, known := locals[use.Field]
	if !known {
		return
	}
	definer, find := l.around(n)
	if definer == nil {
		return
	}
	names := validate.Once(p, definedBy{definer: definer, noun: l.noun}, func() *defined { return newDefined(find()) })
	if names.ok {
		checkAmong(p, use, l.noun, names)
	}
}

// checkAmong reports a reference to a name that is not one of the defined names.
func checkAmong(p *validate.Pass, use xds.Use, noun string, names *defined) {
	if names.has[use.Name] {
		return
	}
	f := validate.Finding{Check: missing(noun), Path: use.Path(), Help: "write one of " + facts.Quoted(names.list)}
	does, warning := localConsequence(p, use)
	f.Message, f.Warning = fmt.Sprintf("unknown %s %q: %s", noun, use.Name, does), warning
	if !p.HasRoom(f) {
		p.Report(f)
		return
	}
	if near := names.candidates().Nearest(use.Name); near != "" {
		f.Help, f.Correction = "", diag.Correction{Wrong: use.Name, Right: near}
	} else if len(names.list) == 0 {
		f.Help = fmt.Sprintf("define the %s", noun)
	}
	p.Report(f)
}

// localConsequence returns the client's reaction to an undefined name. warning is true if the finding is a warning.
func localConsequence(p *validate.Pass, use xds.Use) (does string, warning bool) {
	if p.GRPCAlone() && !slices.Contains(readByGRPC, use.Field) {
		return grpcIgnores, true
	}
	switch p.Envoy.OnMissing(use.Field) {
	case envoyapi.Warned:
		return "Envoy uses the default", true
	case envoyapi.Ignored:
		return "Envoy accepts this, and " + noEffect, true
	case envoyapi.BreaksTraffic:
		return "Envoy accepts this, and " + someFail, true
	}
	return refusal(p), false
}

func specifierPlugins(routes *routev3.RouteConfiguration) (names []string, ok bool) {
	for _, plugin := range routes.GetClusterSpecifierPlugins() {
		names = append(names, plugin.GetExtension().GetName())
	}
	return names, true
}

func jwtProviders(jwt *jwtv3.JwtAuthentication) ([]string, bool) {
	return slices.Sorted(maps.Keys(jwt.GetProviders())), true
}

func jwtRequirements(jwt *jwtv3.JwtAuthentication) ([]string, bool) {
	return slices.Sorted(maps.Keys(jwt.GetRequirementMap())), true
}

func transportSockets(cluster *clusterv3.Cluster) (names []string, ok bool) {
	for _, match := range cluster.GetTransportSocketMatches() {
		names = append(names, match.GetName())
	}
	return names, true
}

// namedChains is the local.around of the named filter chains of a composite filter: those of the composite filter
// around the node, or of the filter that ExtensionWithMatcher wraps.
func namedChains(n *xds.Node) (proto.Message, func() ([]string, bool)) {
	chains := func(m *compositev3.Composite) []string { return slices.Sorted(maps.Keys(m.GetNamedFilterChains())) }
	if composite, at := xds.Enclosing[*compositev3.Composite](n); at != nil {
		return composite, func() ([]string, bool) { return chains(composite), true }
	}
	around, at := xds.Enclosing[*matchingv3.ExtensionWithMatcher](n)
	if at == nil {
		return nil, nil
	}
	return around, func() ([]string, bool) {
		m, _ := around.GetExtensionConfig().GetTypedConfig().UnmarshalNew()
		composite, ok := m.(*compositev3.Composite)
		return chains(composite), ok
	}
}

// routeNames returns the names of the routes of a route configuration. ok is false if Envoy gets further routes by
// VHDS or from a matcher.
func routeNames(routes *routev3.RouteConfiguration) (names []string, ok bool) {
	if routes.GetVhds() != nil {
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

// checkChainAction checks an action of a listener's matcher: a text with the name of a filter chain.
func checkChainAction(p *validate.Pass, n *xds.Node) {
	name, ok := n.Message.(*wrapperspb.StringValue)
	if !ok || p.GRPCAlone() { // gRPC ignores the matcher
		return
	}
	action := facts.Enclosing(n, "xds.core.v3.TypedExtensionConfig")
	if action == nil || action.Field() != "xds.type.matcher.v3.Matcher.OnMatch.action" ||
		!facts.Inside(n, "envoy.config.listener.v3.Listener.filter_chain_matcher") {
		return
	}
	listener, _ := xds.Enclosing[*listenerv3.Listener](n)
	if listener.GetFcdsConfig() != nil {
		return
	}
	chains := validate.Once(p, definedBy{definer: listener, noun: "filter chain"}, func() *defined {
		var names []string
		for _, chain := range listener.GetFilterChains() {
			names = append(names, chain.GetName())
		}
		return newDefined(names, true)
	})
	if chains.has[name.GetValue()] {
		return
	}
	p.Report(validate.Finding{
		Check:   "filter-chain",
		Path:    n.Path().Field("value"),
		Message: fmt.Sprintf("unknown filter chain %q: Envoy closes the connections that select it", name.GetValue()),
		Help:    "write one of " + facts.Quoted(chains.list),
	})
}

func resourceMonitors(manager *overloadv3.OverloadManager) (names []string, ok bool) {
	for _, monitor := range manager.GetResourceMonitors() {
		names = append(names, monitor.GetName())
	}
	return names, true
}
