package importer_test

import (
	"fmt"

	"xdspub/setup/importer"
	"xdspub/source/load"
)

// The cluster becomes a file of a source tree, the node stays in a bootstrap.
func Example() {
	imported := importer.Static(load.Input{Name: "envoy.yaml", Format: "yaml", Data: []byte(`
node: {id: edge-1, cluster: edge}
static_resources:
  clusters:
  # Two machines.
  - name: shop
    connect_timeout: 1s
`)}, importer.Options{})
	for _, f := range imported.Files {
		fmt.Printf("-- %s --\n%s", f.Name, f.Data)
	}
	// Output:
	// -- config/clusters/shop.yaml --
	// # Two machines.
	// "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
	// name: shop
	// connect_timeout: 1s
	// -- bootstrap.yaml --
	// node: {id: edge-1, cluster: edge}
}
