package graph_test

import (
	"context"
	"os"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/observe/graph"
	"xdspub/xds"
)

// A cluster leads to the endpoints that it subscribes to.
func Example() {
	snapshot := xds.NewSnapshot([]*xds.Resource{
		xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "web"}, &clusterv3.Cluster{
			Name: "web", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		}),
		xds.ResourceOf(xds.Key{Type: xds.Endpoints, Name: "web"}, &endpointv3.ClusterLoadAssignment{ClusterName: "web"}),
	})
	g, err := graph.New(context.Background(), snapshot, graph.Options{})
	if err != nil {
		panic(err)
	}
	if err := g.WriteMermaid(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// flowchart LR
	//   n0["web<br>cluster, EDS"]
	//   n1["web<br>endpoint assignment, 0 endpoints"]
	//   n0 --> n1
}
