package serve_test

import (
	"context"
	"fmt"
	"log"
	"net"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/xds"
)

// A client asks for all clusters of a snapshot.
func Example() {
	ctx := context.Background()
	c := cache.New(cache.Options{})
	web, err := xds.NewResource(&clusterv3.Cluster{Name: "web"}, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Publish(ctx, xds.NewSnapshot([]*xds.Resource{web})); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	g := grpc.NewServer()
	serve.Register(g, c)
	go func() { log.Println(g.Serve(listener)) }()
	defer g.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL()}); err != nil {
		log.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(response.Resources), "cluster,", "nonce", response.Nonce)
	// Output:
	// 1 cluster, nonce 1
}
