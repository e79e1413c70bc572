package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// TestOnDemandClusters has an Envoy get a cluster on demand from xdspub serve, and its other clusters from a file.
// Envoy loses the cluster when the same file is renamed into place again. Envoy gets the cluster again when the
// server has another version of it: rule lost-on-demand-clusters.
func TestOnDemandClusters(t *testing.T) {
	const own = "resource_api_version: V3, api_config_source: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}"
	const types = "type.googleapis.com/envoy.extensions.filters."
	const manager = `{name: f, typed_config: {"@type": ` + types + `network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: f, http_filters: [{name: on_demand, typed_config: {"@type": ` + types + `http.on_demand.v3.OnDemand%s}}, {name: router, typed_config: {"@type": ` + types + `http.router.v3.Router}}], route_config: {name: r, validate_clusters: false, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: needed}%s}]}]}}}`
	for name, filter := range map[string]string{
		"filter":    fmt.Sprintf(manager, ", odcds: {source: {"+own+"}, timeout: 0.2s}", ""),
		"route":     fmt.Sprintf(manager, "", `, typed_per_filter_config: {on_demand: {"@type": `+types+`http.on_demand.v3.PerRouteConfig, odcds: {source: {ads: {}, resource_api_version: V3}, timeout: 0.2s}}}`),
		"tcp_proxy": `{name: f, typed_config: {"@type": ` + types + `network.tcp_proxy.v3.TcpProxy, stat_prefix: f, cluster: needed, on_demand: {odcds_config: {` + own + `}, timeout: 0.2s}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := envoytest.NewUpstream(t, "up")
			s := serveTree(t, map[string]string{"needed.yaml": staticCluster("needed", up.Port())})
			s.start(t)
			dir, port := t.TempDir(), envoytest.FreePort(t)
			publish := func() {
				envoytest.Publish(t, filepath.Join(dir, "cds.yaml"), "resources: ["+staticCluster("web", up.Port())+"]\n")
			}
			publish()
			_, server, _ := strings.Cut(s.address, ":")
			bootstrap := fmt.Appendf(nil, `
node: {id: bare, cluster: bare}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {resource_api_version: V3, path_config_source: {path: %s/cds.yaml}}
static_resources:
  clusters:
  - name: xds
    type: STATIC
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
  listeners:
  - {name: l, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [%s]}]}
`, dir, server, port, filter)
			boot := filepath.Join(dir, "boot.yaml")
			if err := os.WriteFile(boot, bootstrap, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, _, exit := xdspub(t, "validate", boot); exit != 0 || !strings.Contains(out, "[lost-on-demand-clusters]") {
				t.Errorf("validate exits with %d:\n%s", exit, out)
			}
			envoy := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
			answers := func() bool {
				status, _, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/", port))
				return err == nil && status == 200
			}
			become := func(what string, want bool) {
				envoytest.Eventually(t, patience, what, func() (bool, string) { return answers() == want, envoy.Log() })
			}
			become("the cluster comes on demand", true)
			publish()
			become("Envoy loses the cluster", false)
			for range 3 {
				if answers() {
					t.Error("Envoy asked for the cluster again")
				}
			}
			s.write(t, "needed.yaml", staticCluster("needed", up.Port(), "connect_timeout: 7s"))
			become("the server has another version of the cluster", true)
		})
	}
}
