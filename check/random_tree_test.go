package check_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// keysInUse are the keys of constraints in random trees. Constraints use the values one and two.
var keysInUse = []string{"env", "region", "version"}

// randomTree returns the files of a source tree. Its resources refer to each other, and many of them have variants,
// each in its own file. Its faults concern two, three, four and more resources together.
func randomTree(r *rand.Rand) map[string]string {
	files := make(map[string]string)
	resource := func(typ, name string, of func() string) {
		list := partition(r)
		if r.IntN(3) == 0 {
			list = []string{""}
		}
		for i, constraints := range list {
			if constraints != "" && r.IntN(4) == 0 {
				continue // clients without a variant
			}
			text := fmt.Sprintf("\"@type\": type.googleapis.com/envoy.%s\n%s", typ, of())
			if constraints != "" {
				text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nresource_name: {name: %s, dynamic_parameter_constraints: %s}\nresource:\n%s", name, constraints, indented("  ", text))
			}
			files[fmt.Sprintf("%s-%s-%d.yaml", typ[strings.LastIndex(typ, ".")+1:], name, i)] = text
		}
	}
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	clusters := []string{"a", "b", "c", "d"}
	for _, name := range clusters[:3] {
		resource("config.cluster.v3.Cluster", name, func() string {
			text := "name: " + name + "\n"
			switch r.IntN(8) {
			case 0:
				return text + "type: STATIC\n"
			case 1:
				return text + "cluster_type: {name: envoy.clusters.aggregate, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [" + one(clusters...) + ", " + one(clusters...) + "]}}\nlb_policy: CLUSTER_PROVIDED\n"
			case 2:
				return text + "lb_policy: CLUSTER_PROVIDED\ncluster_type: {name: envoy.clusters.dynamic_forward_proxy, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig, dns_cache_config: {name: hosts, dns_lookup_family: " + one("V4_ONLY", "V6_ONLY") + "}}}\n"
			}
			text += "type: EDS\neds_cluster_config: {service_name: " + one("e", "e", "f") + ", eds_config: {ads: {}}}\n"
			if r.IntN(2) == 0 {
				text += "common_lb_config: {healthy_panic_threshold: {value: 0}}\n"
			}
			if r.IntN(2) == 0 {
				text += "transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificate_sds_secret_configs: [{name: " + one("s", "t") + ", sds_config: {ads: {}}}]}}}\n"
			}
			return text
		})
	}
	for _, name := range []string{"e", "f", "g"} {
		resource("config.endpoint.v3.ClusterLoadAssignment", name, func() string {
			return "cluster_name: " + name + "\nendpoints: " + one(
				"[]",
				"[{lb_endpoints: [{health_status: UNHEALTHY, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 443}}}}]}]",
				"[{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: "+one("80", "443")+"}}}}]}]",
				"[{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {server_listener_name: l}}}}]}]",
				"[{lb_endpoints: [{endpoint: {address: {envoy_internal_address: {server_listener_name: "+one("l", "m")+"}}}}]}]",
			) + "\n"
		})
	}
	for _, name := range []string{"s", "t"} {
		resource("extensions.transport_sockets.tls.v3.Secret", name, func() string {
			return "name: " + name + "\n" + one(
				"tls_certificate: {certificate_chain: {inline_string: none}, private_key: {inline_string: none}}\n",
				"validation_context: {trusted_ca: {inline_string: none}}\n",
				"generic_secret: {secret: {inline_string: word}}\n",
			)
		})
	}
	routes := []string{"r", "q", "p"}
	for _, name := range routes[:2] {
		resource("config.route.v3.RouteConfiguration", name, func() string {
			text := "name: " + name + "\nvirtual_hosts:\n- {name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: " + one(clusters...) + "}}]"
			if r.IntN(2) == 0 {
				text += ", typed_per_filter_config: {" + one("buffer", "cors") + ": {\"@type\": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}"
			}
			return text + "}\n"
		})
	}
	for i, name := range []string{"l", "m"} {
		resource("config.listener.v3.Listener", name, func() string {
			text := "name: " + name + "\n"
			switch r.IntN(4) {
			case 0, 1:
				text += "internal_listener: {}\n"
			case 2:
				text += "address: {socket_address: {address: 127.0.0.1, port_value: 8080}}\n"
			default:
				text += fmt.Sprintf("address: {socket_address: {address: 127.0.0.1, port_value: %d}}\n", 8081+i)
			}
			text += "filter_chains:\n- filters:\n  - name: f\n    typed_config:\n"
			if r.IntN(3) == 0 {
				text += "      {\"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: " + one(clusters...) + "}\n"
			} else {
				text += "      \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n      stat_prefix: h\n      rds: {route_config_name: " + one(routes...) + ", config_source: {ads: {}}}\n      http_filters:\n"
				switch r.IntN(3) {
				case 0:
					text += "      - {name: buffer, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 9}}\n"
				case 1:
					text += "      - {name: forward, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig, dns_cache_config: {name: hosts, dns_lookup_family: " + one("V4_ONLY", "V6_ONLY") + "}}}\n"
				}
				text += "      - {name: router, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}\n"
			}
			if r.IntN(3) == 0 {
				text += "  transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_certificate_sds_secret_configs: [{name: " + one("s", "t", "u") + ", sds_config: {ads: {}}}]}}}\n"
			}
			return text
		})
	}
	return files
}

// partition returns constraints of variants. Each client has exactly one of the variants.
func partition(r *rand.Rand) []string {
	of := func(key, value string) string { return fmt.Sprintf("{constraint: {key: %s, value: %s}}", key, value) }
	not := func(c string) string { return "{not_constraints: " + c + "}" }
	and := func(a, b string) string { return "{and_constraints: {constraints: [" + a + ", " + b + "]}}" }
	key := keysInUse[r.IntN(len(keysInUse))]
	one := of(key, "one")
	other := of(keysInUse[r.IntN(len(keysInUse))], "two")
	switch r.IntN(4) {
	case 0:
		exists := "{constraint: {key: " + key + ", exists: {}}}"
		return []string{exists, not(exists)}
	case 1:
		return []string{one, not(one)}
	case 2:
		two := of(key, "two")
		return []string{one, two}
	}
	return []string{and(one, other), and(one, not(other)), and(not(one), "{or_constraints: {constraints: ["+other+", "+not(other)+"]}}")}
}

func indented(by, text string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}
