package facts

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

// Collections maps names to the endpoints of LEDS: the name of an endpoint to the endpoint, and the name of a
// collection to all of its endpoints.
var Collections = validate.NewIndex([]*xds.Type{xds.LocalityEndpoints}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	add(r.Name, r)
	add(r.Type.Group(r.Name), r)
})

// Endpoint is an endpoint of a locality. It computes its place only if a finding asks for the place.
type Endpoint struct {
	*endpointv3.LbEndpoint
	resource *xds.Resource
	list     xds.Path // of lb_endpoints; empty if resource is the endpoint
	index    int      // in list
}

// WeightOf returns the weight of an endpoint. An endpoint without a weight has the weight 1.
func WeightOf(e *endpointv3.LbEndpoint) uint64 {
	return uint64(max(1, e.GetLoadBalancingWeight().GetValue()))
}

// At returns the place of a field of the endpoint. path is the path of the field below the endpoint.
func (e Endpoint) At(path xds.Path) Place {
	if e.list != "" {
		path = e.list.Index(e.index).Join(path)
	}
	return Place{e.resource, path}
}

// EndpointsOf returns the endpoints of a locality whose message stands at a place. If the locality gets its
// endpoints by LEDS from this Snapshot, EndpointsOf returns the endpoints of its collection, otherwise
// lb_endpoints.
func EndpointsOf(v validate.View, at Place, l *endpointv3.LocalityLbEndpoints) (all []Endpoint) {
	if AsksElsewhere(l) || l.GetLedsClusterLocalityConfig() == nil {
		all = make([]Endpoint, len(l.GetLbEndpoints()))
		list := at.Path.Field("lb_endpoints")
		for i, e := range l.GetLbEndpoints() {
			all[i] = Endpoint{e, at.Resource, list, i}
		}
		return all
	}
	for _, r := range Collections.Lookup(v, l.GetLedsClusterLocalityConfig().GetLedsCollectionName()) {
		all = append(all, Endpoint{LbEndpoint: r.Message().(*endpointv3.LbEndpoint), resource: r})
	}
	return all
}

// AsksElsewhere reports whether a locality gets its endpoints by LEDS, but not from this Snapshot.
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

// UseOfEndpoints returns how the cluster around a node uses its endpoints. A node without a cluster around it
// belongs to an assignment of EDS.
func UseOfEndpoints(v *envoyapi.Version, n *xds.Node) EndpointUse {
	c, at := xds.Enclosing[*clusterv3.Cluster](n)
	switch k := v.ClusterKindOf(c); {
	case at == nil || k.Factory == "envoy.cluster.static":
		return EndpointsLiteral // Envoy does not resolve addresses that come by EDS
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
