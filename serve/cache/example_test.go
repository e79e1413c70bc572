package cache_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/serve/cache"
	"xdspub/xds"
)

// A cluster that a snapshot no longer has stays until Trim: clients may still use it.
func ExampleCache_Trim() {
	ctx := context.Background()
	c := cache.New(cache.Options{})
	web, err := xds.NewResource(&clusterv3.Cluster{Name: "web"}, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range []*xds.Snapshot{xds.NewSnapshot([]*xds.Resource{web}), xds.NewSnapshot(nil)} {
		if err := c.Publish(ctx, s); err != nil {
			log.Fatal(err)
		}
	}
	trimmed, _, err := c.Trim(ctx, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(trimmed, "resource removed")
	// Output:
	// 1 resource removed
}
