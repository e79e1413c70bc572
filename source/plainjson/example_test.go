package plainjson_test

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/source/plainjson"
)

func Example() {
	for _, text := range []string{`{"name": "web", "connect_timeout": "2s"}`, `{"name": "web", "conect_timeout": "2s"}`} {
		c := &clusterv3.Cluster{}
		plain := plainjson.Unmarshal([]byte(text), c, protoregistry.GlobalTypes)
		fmt.Println(plain, c.GetName(), c.GetConnectTimeout().AsDuration())
	}
	// Output:
	// true web 2s
	// false  0s
}
