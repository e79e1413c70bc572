package rules_test

import (
	"slices"
	"testing"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// both is a tree for Envoys and gRPC clients. Each of its resources has a fault for one kind of client.
const both = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: api, api_listener: {api_listener: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, rds: {route_config_name: api, config_source: {ads: {}}}}}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: api, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {weighted_clusters: {clusters: [{name: all, weight: 1}]}}}]}]}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: all, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: envoy.clusters.aggregate, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [one]}}}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: one, type: EDS, eds_cluster_config: {service_name: ones, eds_config: {ads: {}}}, health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: ones, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: web, address: {socket_address: {address: 127.0.0.1, port_value: 80}}, use_original_dst: true, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: web, rds: {route_config_name: web, config_source: {ads: {}}}, http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: web, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web, timeout: 1s}}]}]}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: STATIC, load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}}
`

// TestProfiles: if a tree has clients of both kinds, rules about gRPC judge only resources that a gRPC client gets,
// and rules about Envoy only resources that an Envoy uses. Otherwise they judge all resources.
func TestProfiles(t *testing.T) {
	loaded := load.Parse(load.Input{Name: "both.yaml", Format: "yaml", Data: []byte(both)})
	if len(loaded.Diagnostics) > 0 {
		t.Fatal(loaded.Diagnostics)
	}
	ofEnvoy := []string{`field-constraint api`, `listener-address api`, `terminal-filter api`}
	ofGRPC := []string{
		`grpc-cluster all`, `grpc-endpoints ones`, `grpc-http-filter api`, `grpc-ignored-field one`,
	}
	for _, tt := range []struct {
		name     string
		profiles []validate.Profile
		want     []string
	}{
		{"none", nil, ofEnvoy},
		{"files", []validate.Profile{validate.EnvoyFile}, ofEnvoy},
		{"both ways of Envoy", []validate.Profile{validate.EnvoyFile, validate.EnvoyADS}, ofEnvoy},
		{"gRPC", []validate.Profile{validate.GRPC}, slices.Concat(ofGRPC, []string{`grpc-cluster web`, `grpc-ignored-field web`, `grpc-listener web`})},
		{"both", []validate.Profile{validate.EnvoyADS, validate.GRPC}, ofGRPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{Profiles: tt.profiles}) {
				got = append(got, diag.CodeOf(d.Code)+" "+d.Resource.Name)
			}
			slices.Sort(got)
			got = slices.Compact(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("found\n%q\nnot\n%q", got, tt.want)
			}
		})
	}
}
