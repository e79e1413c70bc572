package cluster

import (
	"fmt"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/validate"
	"xdspub/xds"
)

var weightSum = &validate.Rule{
	Code: "weight-sum",
	Doc: `Weights are missing, all zero, or above 32 bits in sum.

Each weighted cluster of a route needs a weight ("Field 'weight' is missing"). In an HTTP
route at least one must be above 0 ("Sum of weights in the weighted_cluster must be greater
than 0"), and the sum must be at most 4294967295.

The same limit holds in a cluster with RING_HASH or MAGLEV, for the endpoints of one
priority together and for its localities; an endpoint without a weight counts as 1. If such
a cluster uses DNS, Envoy accepts a larger sum, and hashes wrongly. If the endpoints come by
LEDS, a larger sum crashes Envoy. Other load balancers and tcp_proxy have no such limit.`,
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.config.route.v3.WeightedCluster",
		"envoy.extensions.filters.network.thrift_proxy.v3.WeightedCluster",
	},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			checkEndpointWeights(p, n, m)
		case *routev3.WeightedCluster:
			sum, complete := addWeights(&p.Pass, n, m.GetClusters())
			if complete && n.Field() == "envoy.config.route.v3.RouteAction.weighted_clusters" {
				checkRouteWeights(&p.Pass, n, sum)
			}
		case *thriftv3.WeightedCluster:
			addWeights(&p.Pass, n, m.GetClusters())
		}
	},
}

// addWeights returns the sum of the weights of clusters, and reports clusters without a weight. complete is true if
// there are clusters, and each has a weight.
func addWeights[C interface {
	GetName() string
	GetWeight() *wrapperspb.UInt32Value
}](p *validate.Pass, n *xds.Node, clusters []C) (sum uint64, complete bool) {
	complete = len(clusters) > 0
	for i, c := range clusters {
		if c.GetWeight() == nil {
			complete = false
			p.Report(validate.Finding{
				Path:    n.Path().Field("clusters").Index(i),
				Message: fmt.Sprintf("weighted cluster %q has no weight", c.GetName()),
				Help:    "add a weight; 0 sends no requests to it",
			})
		}
		sum += uint64(c.GetWeight().GetValue())
	}
	return sum, complete
}

func checkRouteWeights(p *validate.Pass, n *xds.Node, sum uint64) {
	switch {
	case sum == 0:
		p.Report(validate.Finding{Path: n.Path().Field("clusters"), Message: "all weights are 0", Help: "set at least one weight above 0"})
	case sum > math.MaxUint32:
		p.Report(validate.Finding{Path: n.Path().Field("clusters"), Message: tooHeavy(sum), Help: "write smaller weights; only their proportions count"})
	}
}
