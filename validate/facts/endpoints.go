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

// Endpoint is an endpoint of a locality, and its place.
type Endpoint struct {
	*endpointv3.LbEndpoint
	Place
}

// WeightOf returns the weight of an endpoint: 1 if the endpoint has none.
func WeightOf(e *endpointv3.LbEndpoint) uint64 {
	return uint64(max(1, e.GetLoadBalancingWeight().GetValue()))
}

// At returns the place of the field at a path of the endpoint.
func (e Endpoint) At(path xds.Path) Place { return Place{e.Resource, e.Path.Join(path)} }

// EndpointsOf returns the endpoints of a locality at a place: those in its message, or those that the Snapshot has for
// LEDS.
func EndpointsOf(v validate.View, at Place, l *endpointv3.LocalityLbEndpoints) (all []Endpoint) {
	if AsksElsewhere(l) || l.GetLedsClusterLocalityConfig() == nil {
		for i, e := range l.GetLbEndpoints() {
			all = append(all, Endpoint{e, Place{at.Resource, at.Path.Field("lb_endpoints").Index(i)}})
		}
		return all
	}
	for _, r := range Collections.Lookup(v, l.GetLedsClusterLocalityConfig().GetLedsCollectionName()) {
		all = append(all, Endpoint{r.Message().(*endpointv3.LbEndpoint), Place{Resource: r}})
	}
	return all
}

// AsksElsewhere reports whether a locality asks another server for its endpoints.
func AsksElsewhere(l *endpointv3.LocalityLbEndpoints) bool {
	leds := l.GetLedsClusterLocalityConfig()
	return leds != nil && !xds.FromSnapshot(leds.GetLedsConfig())
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
