package transition_test

import (
	"fmt"
	"log"

	"xdspub/source/load"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// A running Envoy refuses some changes although a new Envoy would accept the result.
func ExampleTransitions() {
	listener := func(reusePort bool) []*xds.Resource {
		loaded := load.Parse(load.Input{Name: "edge.yaml", Format: "yaml", Data: fmt.Appendf(nil, `"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: edge
enable_reuse_port: %t
address: {socket_address: {address: 0.0.0.0, port_value: 443}}
`, reusePort)})
		return loaded.Resources()
	}
	list, err := transition.Transitions(transition.Served{Snapshot: xds.NewSnapshot(listener(true))}, xds.NewSnapshot(listener(false)), transition.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range list {
		fmt.Println(d)
	}
	// Output:
	// edge.yaml:3:20: error: running listener "edge" has enable_reuse_port: true, which can't change: Envoy would reject it [reuse-port-changed]
}
