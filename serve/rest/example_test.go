package rest_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/serve/cache"
	"xdspub/serve/rest"
	"xdspub/xds"
)

// A client asks for all clusters.
func Example() {
	c := cache.New(cache.Options{Cluster: "xds_cluster"})
	web, err := xds.NewResource(&clusterv3.Cluster{Name: "web"}, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Publish(context.Background(), xds.NewSnapshot([]*xds.Resource{web})); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(rest.New(c, rest.Options{}))
	defer server.Close()

	r, err := http.Post(server.URL+"/v3/discovery:clusters", "application/json", strings.NewReader(`{"node": {"id": "edge"}}`))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Status)
	fmt.Println(strings.ReplaceAll(string(body), `,"`, ",\n"+`"`))
	// Output:
	// 200 OK
	// {"version_info":"vff86a09b855218ae",
	// "type_url":"type.googleapis.com/envoy.config.cluster.v3.Cluster",
	// "resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster",
	// "name":"web"}]}
}
