package oracle_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/envoy/trial"
	"xdspub/tools/envoytest"
)

func shadow(t testing.TB) *oracle.Oracle {
	return oracle.Shadow(trial.Envoy{Program: envoytest.Binary(t)})
}

// TestShadow: a throw-away Envoy finds resources of several types that --mode validate accepts and a running Envoy
// refuses. It accepts the other resources. It opens no port that is in use, and leaves no file.
func TestShadow(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	eds := func(name string, weight uint32) string {
		return fmt.Sprintf(`---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: %[1]s
type: EDS
lb_policy: RING_HASH
eds_cluster_config: {eds_config: {ads: {}}}
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: %[1]s
endpoints:
- load_balancing_weight: 1
  lb_endpoints:
  - {load_balancing_weight: %[2]d, endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 1}}}}
  - {load_balancing_weight: %[2]d, endpoint: {address: {socket_address: {address: 192.0.2.2, port_value: 1}}}}
`, name, weight)
	}
	http := func(name string, filters string) string {
		l := strings.Replace(listener(name, "      rds: {route_config_name: routes, config_source: {ads: {}}}\n      http_filters:\n"+filters), "port_value: 10000", fmt.Sprint("port_value: ", port), 1)
		port++
		return l
	}
	text := eds("fits", 1) + eds("overflows", 4294967295) + `---
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: routes
virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: fits}}]}]
---
"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
name: unwanted
typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}
---
"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime
name: layer
layer: {a.b: 1}
` + http("fine", router) + http("wants", `      - {name: unwanted, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors]}}
`+router)
	if list := judge(t, real(t), tree(t, text)); list.HasErrors() {
		t.Error("taken by --mode validate:", list)
	}
	list := judge(t, shadow(t), tree(t, text))
	want := []string{"overflows envoy-refused", "unwanted envoy-refused"}
	if got := names(list); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", list, want)
	}
	for _, d := range list {
		if d.Line == 0 || d.Severity != diag.Error {
			t.Error(d)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestShadowAsksNobody: a throw-away Envoy connects to no endpoint and no server.
func TestShadowAsksNobody(t *testing.T) {
	somebody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	port := somebody.Addr().(*net.TCPAddr).Port
	const keys = `      - name: jwt
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
          providers: {p: {remote_jwks: {http_uri: {uri: "http://localhost/keys", cluster: named, timeout: 1s}, async_fetch: {}}}}
`
	text := fmt.Sprintf(`---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: named
type: STRICT_DNS
health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
load_assignment: {cluster_name: named, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: localhost, port_value: %[1]d}}}}]}]}
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: asked
type: EDS
eds_cluster_config: {eds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: "127.0.0.1:%[1]d", stat_prefix: g}}]}}}
`, port) + listener("l", "      route_config: {}\n      http_filters:\n"+keys+router)
	if list := judge(t, shadow(t), tree(t, text)); len(list) > 0 {
		t.Error(list)
	}
	mine, err := net.Dial("tcp", somebody.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	first, err := somebody.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != mine.LocalAddr().String() {
		t.Error("Envoy has connected before")
	}
}
