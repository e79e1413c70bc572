package bind_test

import (
	"context"
	"fmt"
	"log"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// files is a medium with a file for each resource.
type files struct{}

func (files) Source(s xds.Subscription) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{
		PathConfigSource: &corev3.PathConfigSource{Path: "/xds/" + s.Name + ".json"},
	}}
}

func (files) Inline() bind.Inline { return bind.Inline{} }

// A bound cluster names the file with its endpoints.
func ExampleBinder() {
	cluster, err := xds.NewResource(&clusterv3.Cluster{Name: "web", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	var binder bind.Binder
	bound := binder.Bind(context.Background(), xds.NewSnapshot([]*xds.Resource{cluster}), files{})
	for _, s := range bound.Lookup(xds.Cluster, "web").Facts().Subscriptions {
		fmt.Println(s.Target, s.Name, xds.PathOf(s.Source))
	}
	// Output:
	// EDS web /xds/web.json
}
