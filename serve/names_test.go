package serve_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	grpcxds "google.golang.org/grpc/xds"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// TestEnvoyNames has an Envoy subscribe to xdstp names in several spellings, and to collections of clusters
// and listeners. The Envoy must follow the collections as their resources come and go.
func TestEnvoyNames(t *testing.T) {
	for _, k := range kinds[:2] {
		t.Run(k.String(), func(t *testing.T) {
			k.locators = `
  cds_resources_locator: "xdstp://a/envoy.config.cluster.v3.Cluster/all/*?b=2&a=1"
  lds_resources_locator: "xdstp://a/envoy.config.listener.v3.Listener/in/*?zone=b&env=%61"`
			c := cache.New(cache.Options{})
			var envoy *envoytest.Envoy
			blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
			port := envoytest.FreePort(t)
			publish := func(route string, clusters ...string) {
				t.Helper()
				tree := fmt.Sprintf(urlListener, port) + fmt.Sprintf(urlRoute, route) + strings.Join(clusters, "")
				if err := c.Publish(t.Context(), parse(t, tree)); err != nil {
					t.Fatal(err)
				}
			}
			one := func(up *envoytest.Upstream) string { return fmt.Sprintf(urlCluster, "one", up.Port()) }
			// A cluster without a collection, one of another collection, and one of another zone.
			others := fmt.Sprintf(clusterTo, "plain", blue.Port()) +
				strings.ReplaceAll(one(blue), "/all/one", "/all/deep/one") + strings.ReplaceAll(one(blue), "one?b=2", "one?b=3")
			answers := func(want string) {
				t.Helper()
				envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
					_, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
					return err == nil && body == want, fmt.Sprint(body, err)
				})
			}
			removed := func(want int64) {
				t.Helper()
				if _, _, err := c.Trim(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				envoytest.Eventually(t, patience, fmt.Sprint(want, " clusters are removed"), func() (bool, string) {
					n := envoy.Stat(t, "cluster_manager.cluster_removed")
					return n == want, fmt.Sprint(n)
				})
			}
			if k.delta { // by state of the world Envoy would wait for a first cluster
				publish("one", others)
			} else {
				publish("one", one(blue), others)
			}
			envoy = start(t, k, "pipe: {path: "+listen(t, c)+"}", "")
			if k.delta {
				answers("")
				publish("one", one(blue), others)
			}
			answers("blue")
			publish("one", one(green), others)
			answers("green")
			publish("two", one(green), fmt.Sprintf(urlCluster, "two", blue.Port()), others)
			answers("blue")
			publish("two", fmt.Sprintf(urlCluster, "two", blue.Port()), others)
			removed(1)
			answers("blue")
			if n := envoy.Stat(t, "cluster_manager.active_clusters"); n != 2 { // including the cluster of the server
				t.Errorf("Envoy has %d clusters: %s", n, envoy.Admin(t, "/clusters"))
			}
			publish("two", others)
			if k.delta { // by state of the world Envoy keeps the last cluster
				removed(2)
			}
			for _, stat := range []string{"cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected"} {
				if n := envoy.Stat(t, stat); n != 0 {
					t.Errorf("%s: %d", stat, n)
				}
			}
		})
	}
}

const urlListener = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: "xdstp://a/envoy.config.listener.v3.Listener/in/web?zone=b&env=a", address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, rds: {route_config_name: "xdstp://a/envoy.config.route.v3.RouteConfiguration/main?z=1&a=%%31", config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}
`

const urlRoute = `
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: "xdstp://a/envoy.config.route.v3.RouteConfiguration/m%%61in?z=1&a=1", virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: "xdstp://a/envoy.config.cluster.v3.Cluster/all/%s?a=1&b=2"}}]}]}
`

const urlCluster = `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: "xdstp://a/envoy.config.cluster.v3.Cluster/all/%[1]s?b=2&a=1", type: EDS, eds_cluster_config: {service_name: "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/all/%[1]s?b=2&a=%%31", eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/all/%[1]s?b=2&a=1", endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}}]}]}
`

// TestGRPCNames has a client of grpc-go with an authority find its backend. grpc-go spells xdstp names in
// another way than Envoy.
func TestGRPCNames(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	blue := backend(t)
	tree := strings.NewReplacer(
		"name: api, api_listener", `name: "xdstp://prod/envoy.config.listener.v3.Listener/api~v1", api_listener`,
		"route_config_name: api", `route_config_name: "xdstp://prod/envoy.config.route.v3.RouteConfiguration/a(pi)?z=~&a=1"`,
		"RouteConfiguration, name: api", `RouteConfiguration, name: "xdstp://prod/envoy.config.route.v3.RouteConfiguration/a(pi)?a=1&z=%7e"`,
		"cluster: api", `cluster: "xdstp://prod/envoy.config.cluster.v3.Cluster/%61pi?b=2&a=1"`,
		"Cluster, name: api", `Cluster, name: "xdstp://prod/envoy.config.cluster.v3.Cluster/api?a=1&b=2"`,
		"eds_cluster_config: {", `eds_cluster_config: {service_name: "xdstp://prod/envoy.config.endpoint.v3.ClusterLoadAssignment/api?b=2&a=1", `,
		"cluster_name: api", `cluster_name: "xdstp://prod/envoy.config.endpoint.v3.ClusterLoadAssignment/api?a=1&b=2"`,
	).Replace(fmt.Sprintf(grpcTree, blue))
	if err := c.Publish(t.Context(), parse(t, tree)); err != nil {
		t.Fatal(err)
	}
	bootstrap := strings.Replace(string(grpcBootstrap(socket)), "{", `{"authorities": {"prod": {}}, `, 1)
	resolver, err := grpcxds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds://prod/"+url.PathEscape("api~v1"), grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var p peer.Peer
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&p), grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	if is := p.Addr.(*net.TCPAddr).Port; is != blue {
		t.Errorf("answers from %d", is)
	}
}

// spellings returns a hundred spellings of the name of one cluster.
func spellings(id string) (list []string) {
	encoded := fmt.Sprintf("%%%02x%s", id[0], id[1:])
	for _, authority := range []string{"a", "%61"} {
		for _, path := range []string{"all/" + id, "%61ll/" + id, "a%6cl/" + id, "all/" + encoded, "%61%6C%6c/" + encoded} {
			for _, context := range []string{"a=1&b=2", "b=2&a=1", "%61=1&b=2", "b=2&%61=%31", "a=%31&b=2", "a=1&b=%32", "%62=2&a=1", "b=%32&a=1", "%61=%31&%62=%32", "%62=%32&%61=%31"} {
				list = append(list, "xdstp://"+authority+"/envoy.config.cluster.v3.Cluster/"+path+"?"+context)
			}
		}
	}
	return list
}

// TestManySpellings has a client subscribe to a cluster, and to a missing cluster, in a hundred spellings
// each: by name, and by locators with two sets of parameters. The client must get the cluster once, the error
// once, and each edit of the cluster once.
func TestManySpellings(t *testing.T) {
	const cluster = `[{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: "xdstp://a/envoy.config.cluster.v3.Cluster/all/web?a=1&b=2", connect_timeout: %ds}]`
	names := append(spellings("web"), spellings("api")...)
	byName := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceNamesSubscribe: names}
	byLocator := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL()}
	for i, name := range names {
		byLocator.ResourceLocatorsSubscribe = append(byLocator.ResourceLocatorsSubscribe, locator(name, fmt.Sprintf("env=%d}", i%2)))
	}
	for how, q := range map[string]*discoveryv3.DeltaDiscoveryRequest{"by name": byName, "by locator": byLocator} {
		t.Run(how, func(t *testing.T) {
			s := run(t, serve.Options{})
			s.publish(fmt.Sprintf(cluster, 1))
			stream := openDelta(t, dial(t, "unix:"+s.socket, nil))
			if err := stream.Send(q); err != nil {
				t.Fatal(err)
			}
			for edit, wantErrors := range []int{1, 0, 0} {
				if edit > 0 {
					s.publish(fmt.Sprintf(cluster, edit+1))
				}
				r, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if len(r.GetResources()) != 1 || len(r.GetResourceErrors()) != wantErrors {
					t.Errorf("edit %d: %d resources, %d errors; want 1, %d", edit, len(r.GetResources()), len(r.GetResourceErrors()), wantErrors)
				}
				if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
