package facts

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"

	"xdspub/validate"
	"xdspub/xds"
)

// ReachesEnvoy reports whether an Envoy uses a resource, if gRPC clients get the same Snapshot. An Envoy uses all
// resources except listeners with an api_listener.
func ReachesEnvoy(_ validate.View, r *xds.Resource) bool { return !isAPIListener(r) }

func isAPIListener(r *xds.Resource) bool {
	l, ok := r.Message().(*listenerv3.Listener)
	return ok && l.GetApiListener() != nil
}

// ReachesGRPC reports whether a gRPC client asks for a resource, if Envoys get the same Snapshot. A gRPC client
// asks for listeners with an api_listener, and for the resources that such a listener leads to.
func ReachesGRPC(v validate.View, r *xds.Resource) bool {
	return reachesGRPC(v, r, make(map[*xds.Resource]bool))
}

func reachesGRPC(v validate.View, r *xds.Resource, seen map[*xds.Resource]bool) bool {
	if seen[r] {
		return false
	}
	seen[r] = true
	if r.Type == xds.Listener {
		return isAPIListener(r)
	}
	for _, by := range namedByGRPC.Lookup(v, r.Key.String()) {
		if reachesGRPC(v, by, seen) {
			return true
		}
	}
	return false
}

// namedByGRPC maps the Key of a resource to the resources that refer to it and that a gRPC client may have.
var namedByGRPC = validate.NewIndex([]*xds.Type{xds.Listener, xds.RouteConfiguration, xds.Cluster},
	func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
		if r.Type == xds.Listener && !isAPIListener(r) {
			return
		}
		for _, sub := range r.Facts().Subscriptions {
			add(xds.Key{Type: sub.Target, Name: sub.Name}.String(), r)
		}
		clusterNames.Walk(r.Message(), func(n *xds.Node) {
			var names []string
			switch m := n.Message.(type) {
			case *routev3.RouteAction:
				names = []string{m.GetCluster()}
			case *routev3.WeightedCluster_ClusterWeight:
				names = []string{m.GetName()}
			case *aggregatev3.ClusterConfig:
				names = m.GetClusters()
			}
			for _, name := range names {
				add(xds.Key{Type: xds.Cluster, Name: name}.String(), r)
			}
		})
	})

var clusterNames = xds.NewSearch(
	"envoy.config.route.v3.RouteAction",
	"envoy.config.route.v3.WeightedCluster.ClusterWeight",
	"envoy.extensions.clusters.aggregate.v3.ClusterConfig",
)
