package bootstrap_test

import (
	"fmt"
	"log"

	"xdspub/setup/bootstrap"
)

// The bootstrap of an Envoy that reads an output directory.
func ExampleEnvoy() {
	config, err := bootstrap.Envoy(bootstrap.EnvoyOptions{
		Dir: "/var/lib/xds", NodeID: "edge-1", NodeCluster: "edge", Admin: "127.0.0.1:9901",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", config)
	// Output:
	// # Envoy bootstrap, made by "xdspub bootstrap envoy".
	// # Start order: xdspub publishes first, then Envoy starts. Envoy exits 1 when a
	// # file that is named here does not exist. A change here needs a restart of Envoy.
	// admin:
	//   address:
	//     socket_address:
	//       address: 127.0.0.1
	//       port_value: 9901
	// dynamic_resources:
	//   cds_config:
	//     path_config_source:
	//       path: /var/lib/xds/cds/cds.json
	//       watched_directory:
	//         path: /var/lib/xds/cds
	//     resource_api_version: V3
	//   lds_config:
	//     path_config_source:
	//       path: /var/lib/xds/lds/lds.json
	//       watched_directory:
	//         path: /var/lib/xds/lds
	//     resource_api_version: V3
	// node:
	//   cluster: edge
	//   id: edge-1
}
