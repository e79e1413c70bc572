package admit_test

import (
	"fmt"

	"xdspub/serve/admit"
	"xdspub/xds"
)

// A client of plain TCP asks for secrets.
func Example() {
	stream := admit.New(admit.Options{}).Stream(admit.Client{Address: "127.0.0.1:1234"})
	fmt.Println(stream.Ask(admit.Request{TypeURL: xds.Cluster.URL()}))
	fmt.Println(stream.Ask(admit.Request{TypeURL: xds.Secret.URL()}))
	// Output:
	// <nil>
	// rpc error: code = PermissionDenied desc = secrets are sent only over TLS or a Unix socket
}
