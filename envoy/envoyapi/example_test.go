package envoyapi_test

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/envoy/envoyapi"
)

// The factory of a cluster says where its endpoints come from.
func ExampleVersion_ClusterKindOf() {
	eds := &clusterv3.Cluster{ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
	static := &clusterv3.Cluster{ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}}
	for _, c := range []*clusterv3.Cluster{eds, static} {
		kind := envoyapi.Latest.ClusterKindOf(c)
		fmt.Println(kind.Factory, kind.Inline)
	}
	// Output:
	// envoy.cluster.eds false
	// envoy.cluster.static true
}
