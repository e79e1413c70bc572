package serve_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"xdspub/serve/cache"
	"xdspub/xds"
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

// TestLosses: a client of grpc-go asks for a listener by name. A snapshot without this listener would leave it
// without any, although other listeners stay.
func TestLosses(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	tree := fmt.Sprintf(grpcTree, backend(t))
	other := strings.ReplaceAll(tree, "name: api, api_listener", "name: other, api_listener")
	if err := c.Publish(t.Context(), parse(t, tree+strings.Split(other, "\n")[1])); err != nil {
		t.Fatal(err)
	}
	losses := func(s *xds.Snapshot) (lost []string) {
		for _, change := range c.Transitions(s) {
			if change.Clients != nil {
				lost = append(lost, fmt.Sprint(change.Clients, change.From.Of(xds.Listener)[0].Name, change.To.Len()))
			}
		}
		return lost
	}
	if lost := losses(parse(t, other)); lost != nil {
		t.Errorf("no client is connected: %v", lost)
	}
	if _, err := grpc_health_v1.NewHealthClient(dialBy(t, socket)).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	if lost := fmt.Sprint(losses(parse(t, other))); lost != "[[client]api0]" {
		t.Error(lost)
	}
	if lost := losses(parse(t, tree)); lost != nil {
		t.Errorf("the listener stays: %v", lost)
	}
}
