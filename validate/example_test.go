package validate_test

import (
	"context"
	"fmt"

	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// Run judges resources together: a listener may ask for routes that nobody has.
func ExampleRun() {
	loaded := load.Parse(load.Input{Name: "edge.yaml", Format: "yaml", Data: []byte(`"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: main
virtual_hosts:
- name: all
  domains: ["*"]
  routes: [{match: {prefix: /}, route: {cluster: wbe}}]
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
`)})
	for _, d := range validate.Run(context.Background(), loaded.Snapshot(), rules.All, validate.Options{Disable: []string{"orphan"}}) {
		fmt.Println(d)
	}
	// Output:
	// edge.yaml:6:50: error: unknown cluster "wbe": Envoy accepts this, and requests fail [unresolved-reference/cluster]
}
