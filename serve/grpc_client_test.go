package serve_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"xdspub/serve/cache"
)

// TestGRPCClient has a client of grpc-go find its backend in a snapshot, and follow later snapshots.
func TestGRPCClient(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	blue, green := backend(t), backend(t)
	publish := func(port int) {
		t.Helper()
		if err := c.Publish(t.Context(), parse(t, fmt.Sprintf(grpcTree, port))); err != nil {
			t.Fatal(err)
		}
	}
	publish(blue)
	conn := dialBy(t, socket)
	call := func() int {
		t.Helper()
		var p peer.Peer
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&p), grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
		return p.Addr.(*net.TCPAddr).Port
	}
	if is := call(); is != blue {
		t.Errorf("answers from %d", is)
	}
	publish(green)
	for deadline := time.Now().Add(patience); call() != green; {
		if time.Now().After(deadline) {
			t.Fatal("the endpoint is not followed")
		}
	}
}

const grpcTree = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: api, api_listener: {api_listener: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, rds: {route_config_name: api, config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: api, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster: api}}]}]}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: api, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: api, endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}
`

// backend starts a gRPC server, and returns its port.
func backend(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(g, health.NewServer())
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return l.Addr().(*net.TCPAddr).Port
}
