package e2e

import (
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"xdspub/xds"
)

// oneServed is a tree with one cluster.
const oneServed = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}`

// plainConnection returns a connection without TLS that ends with the test.
func plainConnection(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestCompressedRequest: the server takes no compressed request, which could be a thousand times as large as it is sent.
func TestCompressedRequest(t *testing.T) {
	t.Parallel()
	s := serveTree(t, map[string]string{"cluster.yaml": oneServed})
	s.start(t)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(plainConnection(t, s.address)).StreamAggregatedResources(t.Context(), grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	// The server may end the stream before it has all of the request.
	_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNames: []string{strings.Repeat("x", 64<<20)}})
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}
