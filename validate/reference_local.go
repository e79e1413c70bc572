package validate

import (
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
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
	"envoy.config.route.v3.RouteAction.cluster_specifier_plugin":       {"cluster specifier plugin", specifierPlugins},

	"envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement.provider_name":                    {"JWT provider", jwtProviders},
	"envoy.extensions.filters.http.jwt_authn.v3.ProviderWithAudiences.provider_name":             {"JWT provider", jwtProviders},
	"envoy.extensions.filters.http.jwt_authn.v3.RequirementRule.requirement_name":                {"JWT requirement", jwtRequirements},
	"envoy.extensions.matching.common_inputs.transport_socket.v3.TransportSocketNameAction.name": {"transport socket", transportSockets},
}

// checkLocal checks a name whose target stands around it.
func checkLocal(p *Pass, n *xds.Node, use xds.Use) {
	l, known := locals[use.Field]
	if !known {
		return
	}
	names, ok := l.defined(n)
	if !ok || slices.Contains(names, use.Name) {
		return
	}
	f := Finding{Path: use.Path, Help: "one of " + quoted(names)}
	if near := diag.NewWords(names).Nearest(use.Name); near != "" {
		f.Help = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) == 0 {
		f.Help = fmt.Sprintf("define the %s", l.noun)
	}
	if use.Load == xds.Warned {
		f.Message = fmt.Sprintf("unknown %s %q: Envoy takes the default", l.noun, use.Name)
		f.Warning = true
	} else {
		f.Message = fmt.Sprintf("unknown %s %q: Envoy refuses the %s", l.noun, use.Name, p.Resource.Type.Noun)
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
