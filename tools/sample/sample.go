// Package sample makes large source trees, for benchmarks.
package sample

import (
	"fmt"
	"strings"
)

// typeLine is the first line of a cluster in a list that does not give the type.
const typeLine = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"

// Clusters returns a DiscoveryResponse of n clusters in YAML, 340 bytes each.
func Clusters(n int) string {
	return "resources:\n" + list(0, n, typeLine, "")
}

// Bootstrap returns the same clusters as an Envoy bootstrap's static resources.
func Bootstrap(n int) string {
	return "static_resources:\n  clusters:\n" + list(0, n, "", "  ")
}

// Part returns n clusters as a list of resources. The number of the first is from.
func Part(from, n int) string {
	return list(from, n, typeLine, "")
}

func list(from, n int, head, indent string) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		text := head + fmt.Sprintf(`name: service-%05[1]d
connect_timeout: 1s
type: STATIC
load_assignment:
  cluster_name: service-%05[1]d
  endpoints:
  - lb_endpoints:
    - endpoint:
        address:
          socket_address:
            address: 10.%[2]d.%[3]d.%[4]d
            port_value: 8080
`, i, i>>16, i>>8&255, i%256)
		b.WriteString(indent + "- " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  "+indent) + "\n")
	}
	return b.String()
}
