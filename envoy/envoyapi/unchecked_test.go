package envoyapi_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/envoy/envoyapi"
)

// uncheckedRows break a constraint of messages that the latest Envoy does not check, and in the last row of a
// policy that it checks.
var uncheckedRows = []struct {
	row   string
	since int // the place of the first version that has the type in Versions, from the oldest
	taken bool
}{
	{`{route: {match: {prefix: /}, route: {cluster: web, internal_redirect_policy: {predicates: [{name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.internal_redirect.allow_listed_routes.v3.AllowListedRoutesConfig, allowed_route_names: [""]}}]}}}}`, 0, true},
	{`{cluster: {health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, custom_health_check: {name: h, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.HealthCheck.HttpHealthCheck}}}]}}`, 0, true},
	{`{cluster: {load_balancing_policy: {policies: [{typed_extension_config: {name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest, choice_count: 1}}}]}}}`, 0, true},
	{`{cluster: {load_balancing_policy: {policies: [{typed_extension_config: {name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin, error_utilization_penalty: -1}}}]}}}`, 0, true},
	{`{cluster: {transport_socket_matches: [{name: a, match: {}, transport_socket: {name: raw, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}], transport_socket_matcher: {matcher_list: {matchers: [{predicate: {single_predicate: {input: {name: i, typed_config: {"@type": type.googleapis.com/envoy.extensions.matching.common_inputs.transport_socket.v3.EndpointMetadataInput, filter: a, path: []}}, value_match: {exact: a}}}, on_match: {action: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.matching.common_inputs.transport_socket.v3.TransportSocketNameAction, name: a}}}}]}}}}`, 1, true},
	{`{cluster: {load_balancing_policy: {policies: [{typed_extension_config: {name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost}}}]}}}`, 0, false},
}

// TestUnchecked: older Envoys do not check the messages that the latest Envoy does not check.
func TestUnchecked(t *testing.T) {
	for _, c := range uncheckedRows {
		var row map[string]map[string]any
		if err := yaml.UnmarshalStrict([]byte(c.row), &row); err != nil {
			t.Fatal(err)
		}
		boot := newerBootstrap(t, row)
		for _, v := range envoyapi.Versions[:len(envoyapi.Versions)-c.since] {
			if taken, said := newerTrial(t, v, boot); taken != c.taken {
				t.Errorf("Envoy %s takes it: %v\n%s\n%s", v.Name, taken, c.row, said)
			}
		}
	}
}
