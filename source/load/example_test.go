package load_test

import (
	"fmt"

	"xdspub/source/load"
)

// Parse returns the resources of one document, and findings with their places.
func ExampleParse() {
	result := load.Parse(load.Input{Name: "web.yaml", Format: "yaml", Data: []byte(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
connect_timeout: 2s
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: api
conect_timeout: 2s
`)})
	for _, r := range result.Resources() {
		fmt.Println(r)
	}
	for _, d := range result.Diagnostics {
		fmt.Println(d)
	}
	// Output:
	// cluster "web"
	// cluster "api"
	// web.yaml:7:1: error: unknown field "conect_timeout" [unknown-field]
}
