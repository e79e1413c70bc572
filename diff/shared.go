package diff

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/xds"
)

// sharing is a place that asks for something shared.
type sharing struct {
	xds.Sharing
	in *xds.Resource
}

// sharingTypes are the types of the resources that can ask for something shared.
var sharingTypes = []*xds.Type{xds.Cluster, xds.Listener, xds.ExtensionConfig, xds.RouteConfiguration, xds.ScopedRoutes, xds.VirtualHost}

var sharingMessages = xds.NewSearch(xds.SharingMessages...)

// sharingIn are the places that ask for something shared, in the resources that of
// gives.
func sharingIn(of func(*xds.Type) ([]*xds.Resource, error)) ([]sharing, error) {
	var all []sharing
	for _, t := range sharingTypes {
		resources, err := of(t)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if c, ok := r.Message.(*clusterv3.Cluster); ok && isPlain(c) {
				continue
			}
			var failed error
			sharingMessages.Walk(r.Message, func(n *xds.Node) {
				list, err := n.Sharing()
				if failed == nil {
					failed = err
				}
				if len(list) == 0 || n.InMetadata() {
					return
				}
				for _, s := range list {
					all = append(all, sharing{s, r})
				}
			})
			if failed != nil {
				return nil, fmt.Errorf("%s: %w", r.Key, failed)
			}
		}
	}
	return all, nil
}

// isPlain tells whether a cluster has nothing in which it could ask for something
// shared: most have not, and a walk over the endpoints of ten thousand takes time.
func isPlain(c *clusterv3.Cluster) bool {
	return c.GetClusterType() == nil && len(c.GetTypedExtensionProtocolOptions()) == 0 && len(c.GetFilters()) == 0
}
