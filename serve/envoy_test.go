package serve_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/serve/rest"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// kindOf is a variant of the protocol, with the settings of a bootstrap that uses the variant.
type kindOf struct {
	kind      cache.Kind
	ads       string // ads_config
	cds, lds  string
	delta     bool
	singleton bool
	tcp       bool   // over TCP instead of a Unix socket
	locators  string // resource locators in the bootstrap, instead of all clusters and listeners
}

func (k kindOf) String() string {
	if k.tcp {
		return string(k.kind) + " by TCP"
	}
	return string(k.kind)
}

// kinds are the variants over gRPC.
var kinds = []kindOf{
	{kind: cache.Aggregated, ads: "GRPC", cds: "ads: {}", lds: "ads: {}"},
	{kind: cache.DeltaAggregated, ads: "DELTA_GRPC", cds: "ads: {}", lds: "ads: {}", delta: true},
	{kind: cache.Singleton, cds: apiSource("GRPC"), lds: apiSource("GRPC"), singleton: true},
	{kind: cache.DeltaSingleton, cds: apiSource("DELTA_GRPC"), lds: apiSource("DELTA_GRPC"), delta: true, singleton: true},
}

// allKinds are the variants over gRPC and over REST.
var allKinds = slices.Concat(kinds, []kindOf{
	{kind: cache.REST, cds: restSource, lds: restSource, singleton: true},
	{kind: cache.REST, cds: restSource, lds: restSource, singleton: true, tcp: true},
})

const restSource = "api_config_source: {api_type: REST, transport_api_version: V3, cluster_names: [xds_cluster], refresh_delay: 0.6s, request_timeout: 5s}"

func apiSource(api string) string {
	return "api_config_source: {api_type: " + api + ", transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]}"
}

const clusterTo = `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %[1]s, type: EDS}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: %[1]s, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}}}]}]}
`

const listenerAt = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: %[1]s, address: {socket_address: {address: %[3]s, port_value: %[2]d}}, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, rds: {route_config_name: main, config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}
`

const routeTo = `
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: %s}}]}]}
`

func parse(t *testing.T, text string) *xds.Snapshot {
	t.Helper()
	result := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(text), Streams: true})
	if len(result.Diagnostics) > 0 {
		t.Fatal(result.Diagnostics)
	}
	return result.Snapshot()
}

// listen serves a cache for clients of the variant, and returns the address for Envoy's bootstrap.
func (k kindOf) listen(t *testing.T, c *cache.Cache) string {
	if k.kind != cache.REST {
		return "pipe: {path: " + listen(t, c) + "}"
	}
	network, at := "unix", socketPath(t)
	if k.tcp {
		network, at = "tcp", "127.0.0.1:0"
	}
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: rest.New(c, rest.Options{})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	if k.tcp {
		return fmt.Sprintf("socket_address: {address: 127.0.0.1, port_value: %d}", l.Addr().(*net.TCPAddr).Port)
	}
	return "pipe: {path: " + at + "}"
}

// socketPath returns a short path for a socket. The path of a socket in t.TempDir may be too long, because it
// has the name of the test.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// listen serves a cache over gRPC on a Unix socket, and returns the path of the socket.
func listen(t testing.TB, c *cache.Cache) string {
	socket := socketPath(t)
	listenAt(t, c, socket)
	return socket
}

// listenAt serves c on a socket until the test ends or calls stop. Another server may use the socket
// afterwards.
func listenAt(t testing.TB, c *cache.Cache, socket string) (stop func()) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	serve.Register(g, c)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return g.Stop
}

// TestEnvoy changes the snapshot of an Envoy by each variant, while the Envoy answers one request after the
// other. Each change must arrive. No request may fail, except with the independent streams of singleton
// services.
func TestEnvoy(t *testing.T) {
	for _, k := range allKinds {
		t.Run(k.String(), func(t *testing.T) {
			c := cache.New(cache.Options{Cluster: "xds_cluster"})
			address := k.listen(t, c)
			blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
			port := envoytest.FreePort(t)
			publish := func(text string) {
				t.Helper()
				if err := c.Publish(t.Context(), parse(t, text)); err != nil {
					t.Fatal(err)
				}
			}
			in := fmt.Sprintf(listenerAt, "in", port, "127.0.0.1")
			publish(fmt.Sprintf(clusterTo, "blue", blue.Port()) + in + fmt.Sprintf(routeTo, "blue"))

			envoy := start(t, k, address, "")
			url := fmt.Sprintf("http://127.0.0.1:%d/", port)
			answers := func(want string) {
				t.Helper()
				envoytest.Eventually(t, patience, "Envoy answers "+want, func() (bool, string) {
					status, body, err := envoytest.Get(t, url)
					return err == nil && status == 200 && body == want, fmt.Sprint(status, body, err)
				})
			}
			answers("blue")

			var failed atomic.Value
			done, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-done:
						return
					default:
						if status, body, err := envoytest.Get(t, url); err != nil || status != 200 {
							failed.CompareAndSwap(nil, fmt.Sprint(status, body, err))
						}
					}
				}
			}()
			// An endpoint moves.
			publish(fmt.Sprintf(clusterTo, "blue", green.Port()) + in + fmt.Sprintf(routeTo, "blue"))
			answers("green")
			// A snapshot adds a cluster, changes the route, and drops the old cluster.
			for i := range 5 {
				name, up := fmt.Sprintf("new-%d", i), []*envoytest.Upstream{blue, green}[i%2]
				publish(fmt.Sprintf(clusterTo, name, up.Port()) + in + fmt.Sprintf(routeTo, name))
				answers([]string{"blue", "green"}[i%2])
				if _, _, err := c.Trim(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			// Envoy refuses a listener with an address that it can't open, once, and keeps the other
			// listener.
			bad := fmt.Sprintf(listenerAt, "bad", port+1, "192.0.2.1")
			publish(fmt.Sprintf(clusterTo, "new-4", blue.Port()) + in + bad + fmt.Sprintf(routeTo, "new-4"))
			envoytest.Eventually(t, patience, "Envoy refuses the listener", func() (bool, string) {
				n := envoy.Stat(t, "listener_manager.lds.update_rejected")
				return n > 0, fmt.Sprint(n)
			})
			answers("blue")
			publish(fmt.Sprintf(clusterTo, "new-4", green.Port()) + in + fmt.Sprintf(routeTo, "new-4"))
			answers("green")
			close(done)
			<-stopped
			if f := failed.Load(); f != nil && !k.singleton {
				t.Errorf("a request failed: %v", f)
			}
			if n := envoy.Stat(t, "listener_manager.lds.update_rejected"); n != 1 {
				t.Errorf("Envoy refused listeners %d times", n)
			}
			if log := envoy.Log(); strings.Contains(log, "[critical]") {
				t.Error(log)
			}
		})
	}
}

// start starts an Envoy that gets all resources by a variant.
func start(t *testing.T, k kindOf, address, more string) *envoytest.Envoy {
	t.Helper()
	ads := ""
	if k.ads != "" {
		ads = "\n  ads_config: {api_type: " + k.ads + ", transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]}"
	}
	ads += k.locators
	http2 := ""
	if k.kind != cache.REST {
		http2 = "\n    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {\"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}"
	}
	return envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: edge, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {resource_api_version: V3, initial_fetch_timeout: 0s, %s}
  lds_config: {resource_api_version: V3, initial_fetch_timeout: 0s, %s}%s
static_resources:
  clusters:
  - name: xds_cluster
    type: STATIC%s
    load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {%s}}}]}]}
%s
`, k.cds, k.lds, ads, http2, address, more)})
}

// TestOtherTypes has an Envoy get virtual hosts on demand, scopes, runtime layers and extension configs, by
// each variant.
func TestOtherTypes(t *testing.T) {
	for _, k := range allKinds {
		t.Run(k.String(), func(t *testing.T) {
			c := cache.New(cache.Options{Cluster: "xds_cluster"})
			address := k.listen(t, c)
			up := envoytest.NewUpstream(t, "blue")
			vhds, scoped := envoytest.FreePort(t), envoytest.FreePort(t)
			publish := func(status int) {
				t.Helper()
				if err := c.Publish(t.Context(), parse(t, fmt.Sprintf(clusterTo, "blue", up.Port())+fmt.Sprintf(otherTypes, vhds, scoped, status))); err != nil {
					t.Fatal(err)
				}
			}
			publish(404)
			source := "ads: {}"
			if k.singleton {
				source = k.cds
			}
			envoy := start(t, k, address, "layered_runtime: {layers: [{name: flags, rtds_layer: {name: flags, rtds_config: {resource_api_version: V3, "+source+"}}}]}")
			answers := func(port int, host string, want int) {
				t.Helper()
				envoytest.Eventually(t, patience, fmt.Sprint("Envoy answers ", want, " for ", host), func() (bool, string) {
					status, body, err := envoytest.GetHost(t, fmt.Sprintf("http://127.0.0.1:%d/", port), host)
					return err == nil && status == want, fmt.Sprint(status, body, err)
				})
			}
			answers(vhds, "a.example", 200)
			answers(vhds, "none.example", 404)
			answers(scoped, "any.example", 200)
			if runtime := envoy.Admin(t, "/runtime"); !strings.Contains(runtime, `"a.b"`) {
				t.Errorf("runtime: %s", runtime)
			}
			publish(418)
			envoytest.Eventually(t, patience, "the filter changes", func() (bool, string) {
				_, body, err := envoytest.GetHost(t, fmt.Sprintf("http://127.0.0.1:%d/x", vhds), "b.example")
				return err == nil && body == "418", fmt.Sprint(body, err)
			})
		})
	}
}

const otherTypes = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: vhds, address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: v, rds: {route_config_name: hosts, config_source: {ads: {}}}, http_filters: [{name: envoy.filters.http.on_demand, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand}}, {name: respond, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}, {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}
- {"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: respond, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "function envoy_on_request(h) if h:headers():get(':path') == '/x' then h:respond({[':status'] = '200'}, '%[3]d') end end"}}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: hosts, vhds: {config_source: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: hosts/a, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: a, domains: [a.example], routes: [{match: {prefix: /}, route: {cluster: blue}}]}}
- {"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: hosts/b, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: b, domains: [b.example], routes: [{match: {prefix: /}, route: {cluster: blue}}]}}
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: scoped, address: {socket_address: {address: 127.0.0.1, port_value: %[2]d}}, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, scoped_routes: {name: scopes, scope_key_builder: {fragments: [{header_value_extractor: {name: ":authority", index: 0}}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}
- {"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: any, route_configuration_name: main, key: {fragments: [{string_key: any.example}]}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: blue}}]}]}
- {"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: flags, layer: {a.b: 1}}
`
