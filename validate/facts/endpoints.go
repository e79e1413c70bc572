package facts

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

// Collections are the endpoints of LEDS by their own names and by those of their collections.
var Collections = validate.NewIndex([]*xds.Type{xds.LocalityEndpoints}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	add(r.Name, r)
	add(r.Type.Group(r.Name), r)
})

// EndpointsOf returns the endpoints of a locality: those in its message, or those that the Snapshot has for LEDS.
func EndpointsOf(v validate.View, l *endpointv3.LocalityLbEndpoints) []*endpointv3.LbEndpoint {
	leds := l.GetLedsClusterLocalityConfig()
	if leds == nil || !xds.FromSnapshot(leds.GetLedsConfig()) {
		return l.GetLbEndpoints()
	}
	var all []*endpointv3.LbEndpoint
	for _, r := range Collections.Lookup(v, leds.GetLedsCollectionName()) {
		all = append(all, r.Message().(*endpointv3.LbEndpoint))
	}
	return all
}

// EndpointUse is what a cluster makes of the endpoints in an assignment.
type EndpointUse int

const (
	// EndpointsUnused says that Envoy does not look at them.
	EndpointsUnused EndpointUse = iota
	// EndpointsLiteral says that their addresses are taken as they are.
	EndpointsLiteral
	// EndpointsLookedUp says that their addresses are names for DNS.
	EndpointsLookedUp
)

// UseOfEndpoints returns what becomes of the endpoints around or below a node.
func UseOfEndpoints(v *envoyapi.Version, n *xds.Node) EndpointUse {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch k := v.ClusterKindOf(c); {
	case at == nil || k.Factory == "envoy.cluster.static":
		return EndpointsLiteral // without a cluster: EDS
	case k.Inline:
		return EndpointsLookedUp
	default:
		return EndpointsUnused
	}
}

// NotIP reports whether an address is a pipe or an internal listener.
func NotIP(a *corev3.Address) bool {
	return a.GetPipe() != nil || a.GetEnvoyInternalAddress() != nil
}
