package route

import (
	"xdspub/xds"
)

// weighsRoute reports whether a weighted cluster belongs to an HTTP route. Dubbo and the generic proxy use the same
// message, and check less of it.
func weighsRoute(n *xds.Node) bool {
	return n.Parent != nil && n.Parent.Field() == "envoy.config.route.v3.RouteAction.weighted_clusters"
}
