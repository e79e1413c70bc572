package xdstp_test

import (
	"fmt"

	"xdspub/xds/xdstp"
)

// Two spellings of one name.
func Example() {
	fmt.Println(xdstp.Canonical("xdstp://prod/envoy.config.cluster.v3.Cluster/web?zone=b&env=%61"))
	fmt.Println(xdstp.Canonical("xdstp://prod/envoy.config.cluster.v3.Cluster/web?env=a&zone=b"))
	_, err := xdstp.Parse("xdstp://prod")
	fmt.Println(err)
	// Output:
	// xdstp://prod/envoy.config.cluster.v3.Cluster/web?env=a&zone=b
	// xdstp://prod/envoy.config.cluster.v3.Cluster/web?env=a&zone=b
	// it has no type
}
