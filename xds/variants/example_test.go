package variants_test

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

func ExampleTree() {
	variant := func(statName string, of params.Constraints) *xds.Resource {
		r := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "web"}, &clusterv3.Cluster{Name: "web", AltStatName: statName})
		r.For = of
		return r
	}
	prod := params.Value("env", "prod")
	tree := variants.Of(xds.NewSnapshot([]*xds.Resource{variant("live", prod), variant("trial", params.Not(prod))}))
	for _, client := range []params.Parameters{{"env": "prod"}, {}} {
		got := tree.For(variants.Client{Parameters: client}).Snapshot.Lookup(xds.Cluster, "web")
		fmt.Printf("a client with %s: %s\n", client, got.Message().(*clusterv3.Cluster).AltStatName)
	}
	// Output:
	// a client with env=prod: live
	// a client with no parameters: trial
}
