package facts

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

// Collections indexes endpoints of LEDS by their own names and by the names of their collections.
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

// EndpointUse tells how a cluster uses the endpoints of an assignment.
type EndpointUse int

const (
	// EndpointsUnused means that Envoy ignores the endpoints.
	EndpointsUnused EndpointUse = iota
	// EndpointsLiteral means that Envoy connects to the addresses as written.
	EndpointsLiteral
	// EndpointsLookedUp means that Envoy resolves the addresses by DNS.
	EndpointsLookedUp
)

// UseOfEndpoints returns the use of the endpoints around or below a node.
func UseOfEndpoints(v *envoyapi.Version, n *xds.Node) EndpointUse {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch k := v.ClusterKindOf(c); {
	case at == nil || k.Factory == "envoy.cluster.static":
		return EndpointsLiteral // an EDS resource, which has no cluster around it
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
