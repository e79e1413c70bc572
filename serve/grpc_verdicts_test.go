package serve_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/serve/cache"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// grpcVerdict is a resource with the verdicts of grpc-go and xdspub.
type grpcVerdict struct {
	// name says what the resource is about.
	name string
	// kind is the key of the resource in grpcParts that the resource replaces.
	kind string
	// fields are the fields of the resource, without its name.
	fields string
	// grpc is the behavior of grpc-go: "takes", "fails CODE" if each call fails, or a part of the message
	// with which grpc-go rejects the resource.
	grpc string
	// finds is the code of xdspub's finding, with ! for an error.
	finds string
}

// grpcParts are the resources of a client and of a server of grpc-go.
var grpcParts = map[string]string{
	"listener":  `api_listener: {api_listener: {"@type": ` + managerType + `, rds: {route_config_name: api, config_source: {ads: {}}}, http_filters: [` + routerFilter + `]}}`,
	"routes":    `virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, route: {cluster: api}}]}]`,
	"cluster":   `type: EDS, eds_cluster_config: {eds_config: {ads: {}}}`,
	"endpoints": `endpoints: [{locality: {}, load_balancing_weight: 1, lb_endpoints: [BACKEND]}]`,
	"server":    `ADDRESS, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": ` + managerType + `, ` + ownRoutes + `, http_filters: [` + routerFilter + `]}}]}]`,
}

const (
	managerType  = `type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`
	routerFilter = `{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`
	faultFilter  = `{name: fault, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault}}`
	rbacFilter   = `{name: rbac, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC}}`
	bufferFilter = `{name: buffer, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}}`
	bufferMaybe  = `{name: buffer, is_optional: true, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}}`
	ownRoutes    = `route_config: {name: own, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, non_forwarding_action: {}}]}]}`
	byRDS        = `rds: {route_config_name: api, config_source: {ads: {}}}`
)

// apiListener is a listener of a client with other fields in its connection manager.
func apiListener(fields string) string {
	return `api_listener: {api_listener: {"@type": ` + managerType + `, ` + fields + `}}`
}

// serverListener returns a server's listener with additional fields in its filter chain.
func serverListener(chain, fields string) string {
	return `ADDRESS, filter_chains: [{` + chain + `filters: [{name: hcm, typed_config: {"@type": ` + managerType + `, ` + fields + `}}]}]`
}

func routesWith(route string) string {
	return `virtual_hosts: [{name: all, domains: ["*"], routes: [` + route + `]}]`
}

// upstreamTLS is a cluster with TLS.
func upstreamTLS(common string) string {
	return grpcParts["cluster"] + `, transport_socket: {name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {` + common + `}}}`
}

// downstreamTLS is a server's listener with TLS.
func downstreamTLS(fields, common string) string {
	return serverListener(`transport_socket: {name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, `+fields+`common_tls_context: {`+common+`}}}, `,
		ownRoutes+`, http_filters: [`+routerFilter+`]`)
}

func policies(list string) string {
	return grpcParts["cluster"] + `, load_balancing_policy: {policies: [` + list + `]}`
}

func policy(config string) string {
	return `{typed_extension_config: {name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.` + config + `}}}`
}

const (
	aggregateOf = `cluster_type: {name: envoy.clusters.aggregate, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig`
	atHost      = `type: LOGICAL_DNS, load_assignment: {cluster_name: api, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: localhost, port_value: `
	localWith   = `{locality: {}, load_balancing_weight: 1, lb_endpoints: [BACKEND`
	elsewhere   = `{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}`
	providerOwn = `tls_certificate_provider_instance: {instance_name: own}`
	providerCA  = `validation_context: {ca_certificate_provider_instance: {instance_name: own}`
)

var grpcVerdicts = []grpcVerdict{
	{"as it should be", "cluster", grpcParts["cluster"], "takes", ""},
	// grpc-listener, of a client
	{"routes inline", "listener", apiListener(strings.Replace(ownRoutes, "non_forwarding_action: {}", "route: {cluster: api}", 1) + `, http_filters: [` + routerFilter + `]`), "takes", ""},
	{"routes by self", "listener", apiListener(strings.Replace(byRDS, "ads", "self", 1) + `, http_filters: [` + routerFilter + `]`), "takes", ""},
	{"routes by a file", "listener", apiListener(`rds: {route_config_name: api, config_source: {path_config_source: {path: /r.json}}}, http_filters: [` + routerFilter + `]`), "RDS configSource is not ADS or Self", "grpc-listener!"},
	{"routes from nowhere", "listener", apiListener(`rds: {route_config_name: api}, http_filters: [` + routerFilter + `]`), "RDS configSource is not ADS or Self", "grpc-listener!"},
	{"routes without a name", "listener", apiListener(`rds: {config_source: {ads: {}}}, http_filters: [` + routerFilter + `]`), "empty route_config_name", "grpc-listener! unresolved-reference!"},
	{"no routes", "listener", apiListener(`http_filters: [` + routerFilter + `]`), "no RouteSpecifier", "grpc-listener!"},
	{"scopes", "listener", apiListener(`scoped_routes: {name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: a, index: 0}}]}, scoped_route_configurations_list: {scoped_route_configurations: [{name: s, route_configuration_name: api, key: {fragments: [{string_key: k}]}}]}, rds_config_source: {ads: {}}}, http_filters: [` + routerFilter + `]`), "unsupported type", "grpc-listener!"},
	{"trusted hops", "listener", apiListener(byRDS + `, xff_num_trusted_hops: 1, http_filters: [` + routerFilter + `]`), "xff_num_trusted_hops must be unset", "grpc-listener!"},
	{"detection of addresses", "listener", apiListener(byRDS + `, original_ip_detection_extensions: [{name: xff, typed_config: {"@type": type.googleapis.com/envoy.extensions.http.original_ip_detection.xff.v3.XffConfig}}], http_filters: [` + routerFilter + `]`), "original_ip_detection_extensions must be empty", "grpc-listener!"},
	{"no connection manager", "listener", `api_listener: {api_listener: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`, "unexpected http connection manager resource type", "grpc-listener!"},
	{"neither client nor server", "listener", `stat_prefix: s`, "no address field", "grpc-listener!"},
	// grpc-listener, of a server
	{"server", "server", grpcParts["server"], "takes", ""},
	{"listener filters", "server", grpcParts["server"] + `, listener_filters: [{name: i, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector}}]`, "unsupported field 'listener_filters'", "grpc-listener!"},
	{"original destination", "server", grpcParts["server"] + `, use_original_dst: true`, "unsupported field 'use_original_dst'", "grpc-listener!"},
	{"pipe", "server", strings.Replace(grpcParts["server"], "ADDRESS", "address: {pipe: {path: /run/a.sock}}", 1), "no socket_address field", "grpc-listener!"},
	{"no filter chain", "server", `ADDRESS`, "no supported filter chains and no default filter chain", "grpc-listener!"},
	{"default filter chain", "server", strings.TrimSuffix(strings.Replace(grpcParts["server"], "filter_chains: [", "default_filter_chain: ", 1), "]"), "takes", ""},
	{"filter chain for a port", "server", serverListener(`filter_chain_match: {destination_port: 1}, `, ownRoutes+`, http_filters: [`+routerFilter+`]`), "no supported filter chains and no default filter chain", "grpc-listener grpc-listener!"},
	{"filter chain for a name", "server", serverListener(`filter_chain_match: {server_names: [a]}, `, ownRoutes+`, http_filters: [`+routerFilter+`]`), "no supported filter chains and no default filter chain", "grpc-listener grpc-listener!"},
	{"filter chain for TLS", "server", serverListener(`filter_chain_match: {transport_protocol: tls}, `, ownRoutes+`, http_filters: [`+routerFilter+`]`), "no supported filter chains and no default filter chain", "grpc-listener grpc-listener!"},
	{"filter chain for a protocol", "server", serverListener(`filter_chain_match: {application_protocols: [h2]}, `, ownRoutes+`, http_filters: [`+routerFilter+`]`), "no supported filter chains and no default filter chain", "grpc-listener grpc-listener!"},
	{"filter chain for a port beside another", "server", serverListener(`filter_chain_match: {destination_port: 1}, filters: [{name: unknown}]}, {`, ownRoutes+`, http_filters: [`+routerFilter+`]`), "takes", "grpc-listener"},
	{"no filters", "server", `ADDRESS, filter_chains: [{filters: []}]`, "missing HttpConnectionManager filter", "grpc-listener!"},
	{"tcp_proxy", "server", `ADDRESS, filter_chains: [{filters: [{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: api}}]}]`, "unsupported network filter", "grpc-listener!"},
	{"network filter without a name", "server", strings.Replace(grpcParts["server"], "name: hcm, ", "", 1), "missing name field", "grpc-listener!"},
	{"network filters of one name", "server", serverListener("", ownRoutes+`, http_filters: [`+routerFilter+`]}}, {name: hcm, typed_config: {"@type": `+managerType+`, `+ownRoutes+`, http_filters: [`+routerFilter+`]`), "duplicate filter name", "grpc-listener!"},
	// grpc-http-filter
	{"fault", "listener", apiListener(byRDS + `, http_filters: [` + faultFilter + `, ` + routerFilter + `]`), "takes", ""},
	{"unknown filter", "listener", apiListener(byRDS + `, http_filters: [` + bufferFilter + `, ` + routerFilter + `]`), "no filter implementation found", "grpc-http-filter!"},
	{"unknown optional filter", "listener", apiListener(byRDS + `, http_filters: [` + bufferMaybe + `, ` + routerFilter + `, ` + strings.Replace(bufferMaybe, "buffer", "last", 1) + `]`), "takes", ""},
	{"RBAC of a client", "listener", apiListener(byRDS + `, http_filters: [` + rbacFilter + `, ` + routerFilter + `]`), "not supported client-side", "grpc-http-filter!"},
	{"RBAC of a server", "server", serverListener("", ownRoutes+`, http_filters: [`+rbacFilter+`, `+routerFilter+`]`), "takes", ""},
	{"fault of a server", "server", serverListener("", ownRoutes+`, http_filters: [`+faultFilter+`, `+routerFilter+`]`), "not supported server-side", "grpc-http-filter!"},
	{"filter without a name", "listener", apiListener(byRDS + `, http_filters: [` + strings.Replace(routerFilter, "name: router, ", "", 1) + `]`), "missing name field", "grpc-http-filter!"},
	{"filters of one name", "listener", apiListener(byRDS + `, http_filters: [` + strings.Replace(faultFilter, "name: fault", "name: router", 1) + `, ` + routerFilter + `]`), "duplicate filter name", "grpc-http-filter!"},
	{"router first", "listener", apiListener(byRDS + `, http_filters: [` + routerFilter + `, ` + faultFilter + `]`), "is a terminal filter but it is not last", "grpc-http-filter!"},
	{"no router", "listener", apiListener(byRDS + `, http_filters: [` + faultFilter + `]`), "is not a terminal filter", "grpc-http-filter!"},
	{"no HTTP filters", "listener", apiListener(byRDS), "http filters list is empty", "grpc-http-filter!"},
	{"filter by ECDS", "listener", apiListener(byRDS + `, http_filters: [{name: e, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault], default_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault}}}, ` + routerFilter + `]`), "no filter implementation found", "grpc-http-filter! unresolved-reference"},
	{"stateful session", "listener", apiListener(byRDS + `, http_filters: [{name: s, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession}}, ` + routerFilter + `]`), "no filter implementation found", "grpc-http-filter"},
	{"override", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api}, typed_per_filter_config: {fault: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault}}}`), "takes", "unresolved-reference"},
	{"unknown override", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api}, typed_per_filter_config: {buffer: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}}`), "no filter implementation found", "grpc-http-filter! unresolved-reference"},
	{"unknown override of a host", "routes", `virtual_hosts: [{name: all, domains: ["*"], typed_per_filter_config: {buffer: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}, routes: [{match: {prefix: ""}, route: {cluster: api}}]}]`, "no filter implementation found", "grpc-http-filter! unresolved-reference"},
	{"unknown optional override", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api}, typed_per_filter_config: {buffer: {"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, is_optional: true, config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}}}`), "takes", "unresolved-reference"},
	{"override of the router", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api}, typed_per_filter_config: {router: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}`), "unexpected config override", "grpc-http-filter!"},
	// grpc-route
	{"no path", "routes", routesWith(`{match: {}, route: {cluster: api}}`), "doesn't have a path specifier", "grpc-route!"},
	{"no match", "routes", routesWith(`{route: {cluster: api}}`), "doesn't have a match", "grpc-route!"},
	{"path template", "routes", routesWith(`{match: {path_separated_prefix: /a}, route: {cluster: api}}`), "unrecognized path specifier", "grpc-route!"},
	{"query", "routes", routesWith(`{match: {prefix: "", query_parameters: [{name: a, present_match: true}]}, route: {cluster: api}}`), "fails Unavailable", "grpc-route"},
	{"header without condition", "routes", routesWith(`{match: {prefix: "", headers: [{name: a}]}, route: {cluster: api}}`), "unrecognized header matcher", "grpc-route!"},
	{"header with an empty prefix", "routes", routesWith(`{match: {prefix: "", headers: [{name: a, string_match: {prefix: ""}}]}, route: {cluster: api}}`), "empty prefix is not allowed", "grpc-route!"},
	{"header with an empty text", "routes", routesWith(`{match: {prefix: "", headers: [{name: a, string_match: {}}]}, route: {cluster: api}}`), "unrecognized string matcher", "grpc-route!"},
	{"header that is not there", "routes", routesWith(`{match: {prefix: "", headers: [{name: a, invert_match: true, present_match: true}]}, route: {cluster: api}}`), "takes", ""},
	{"weights", "routes", routesWith(`{match: {prefix: ""}, route: {weighted_clusters: {clusters: [{name: api, weight: 1}, {name: api, weight: 0}]}}}`), "takes", ""},
	{"weights of 0", "routes", routesWith(`{match: {prefix: ""}, route: {weighted_clusters: {clusters: [{name: api, weight: 0}]}}}`), "has no valid cluster in WeightedCluster", "grpc-route!"},
	{"too much weight", "routes", routesWith(`{match: {prefix: ""}, route: {weighted_clusters: {clusters: [{name: api, weight: 4294967295}, {name: api, weight: 1}]}}}`), "total weight of clusters exceeds", "grpc-route!"},
	{"cluster by a header", "routes", routesWith(`{match: {prefix: ""}, route: {cluster_header: a}}`), "fails Unavailable", "grpc-route"},
	{"redirect", "routes", routesWith(`{match: {prefix: ""}, redirect: {host_redirect: a}}`), "fails Unavailable", "grpc-route"},
	{"direct response", "routes", routesWith(`{match: {prefix: ""}, direct_response: {status: 200}}`), "fails Unavailable", "grpc-route"},
	{"unknown plugin", "routes", `cluster_specifier_plugins: [{extension: {name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig, source_code: {inline_string: "a"}}}}], ` + grpcParts["routes"], "was not found", "grpc-route!"},
	{"retries", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, retry_policy: {retry_on: unavailable, num_retries: 1, retry_back_off: {base_interval: 1s, max_interval: 2s}}}}`), "takes", ""},
	{"no retries", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, retry_policy: {retry_on: unavailable, num_retries: 0}}}`), "must be >= 1", "grpc-route!"},
	{"no pause", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, retry_policy: {retry_on: unavailable, retry_back_off: {base_interval: 0s}}}}`), "must be > 0", "grpc-route!"},
	{"no pause at most", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, retry_policy: {retry_on: unavailable, retry_back_off: {base_interval: 1s, max_interval: 0s}}}}`), "must be > 0", "grpc-route!"},
	{"retries on 5xx", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, retry_policy: {retry_on: 5xx}}}`), "takes", "grpc-route"},
	{"bad regular expression", "routes", routesWith(`{match: {safe_regex: {regex: "("}}, route: {cluster: api}}`), "contains an invalid regex", "bad-regex!"},
	{"character", "routes", routesWith(`{match: {safe_regex: {regex: "/caf[éè]|/grpc.health.v1.Health/Check|\\x{100}"}}, route: {cluster: api}}`), "takes", ""},
	{"large regular expression", "routes", routesWith(`{match: {safe_regex: {regex: "/grpc.health.v1.Health/Check|(abcdefghij){100}"}}, route: {cluster: api}}`), "takes", ""},
	// unresolved-reference
	{"unknown cluster", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: gone}}`), "fails Unavailable", "unresolved-reference!"},
	{"unknown mirror", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, request_mirror_policies: [{cluster: gone}]}}`), "takes", "grpc-ignored-field unresolved-reference"},
	{"unknown specifier plugin", "routes", routesWith(`{match: {prefix: ""}, route: {cluster_specifier_plugin: gone}}`), "cluster specifier plugin", "unresolved-reference!"},
	// grpc-cluster
	{"static", "cluster", `type: STATIC`, "unsupported cluster type", "grpc-cluster!"},
	{"endpoints of this tree", "cluster", `type: EDS`, "takes", ""},
	{"endpoints by a file", "cluster", `type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /e.json}}}`, "EDS config source is not ADS or Self", "grpc-cluster!"},
	{"endpoints by self", "cluster", `type: EDS, eds_cluster_config: {eds_config: {self: {}}}`, "takes", ""},
	{"host", "cluster", atHost + `PORT}}}}]}]}`, "takes", ""},
	{"host without a port", "cluster", atHost + `0}}}}]}]}`, "port for endpoint for LOGICAL_DNS cluster not set", "grpc-cluster!"},
	{"two hosts", "cluster", atHost + `1}}}}, ` + elsewhere + `]}]}`, "must have exactly one endpoint", "grpc-cluster!"},
	{"no host", "cluster", `type: LOGICAL_DNS`, "load_assignment not present", "grpc-cluster!"},
	{"aggregate of none", "cluster", aggregateOf + `}}`, "aggregate cluster has empty clusters", "grpc-cluster!"},
	{"custom type", "cluster", `cluster_type: {name: envoy.clusters.dynamic_forward_proxy, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig}}`, "unsupported cluster type", "grpc-cluster!"},
	{"random", "cluster", grpcParts["cluster"] + `, lb_policy: RANDOM`, "unexpected lbPolicy", "grpc-cluster!"},
	{"random beside a policy", "cluster", policies(policy(`round_robin.v3.RoundRobin`)) + `, lb_policy: RANDOM`, "unexpected lbPolicy", "grpc-cluster!"},
	{"ring hash", "cluster", grpcParts["cluster"] + `, lb_policy: RING_HASH`, "takes", ""},
	{"ring hash by murmur", "cluster", grpcParts["cluster"] + `, lb_policy: RING_HASH, ring_hash_lb_config: {hash_function: MURMUR_HASH_2}`, "unsupported ring_hash hash function", "grpc-cluster!"},
	{"least request", "cluster", grpcParts["cluster"] + `, lb_policy: LEAST_REQUEST`, "takes", ""},
	{"least request of one", "cluster", grpcParts["cluster"] + `, lb_policy: LEAST_REQUEST, least_request_lb_config: {choice_count: 1}`, "ChoiceCount must be >= 2", "grpc-cluster!"},
	{"policy", "cluster", policies(policy(`random.v3.Random`) + `, ` + policy(`wrr_locality.v3.WrrLocality, endpoint_picking_policy: {policies: [`+policy(`round_robin.v3.RoundRobin`)+`]}`)), "takes", ""},
	{"unknown policy", "cluster", policies(policy(`random.v3.Random`)), "no supported policy found", "grpc-cluster!"},
	{"unknown policy in another", "cluster", policies(policy(`wrr_locality.v3.WrrLocality, endpoint_picking_policy: {policies: [` + policy(`random.v3.Random`) + `]}`)), "no supported policy found", "grpc-cluster!"},
	{"policy by murmur", "cluster", policies(policy(`ring_hash.v3.RingHash, hash_function: MURMUR_HASH_2`)), "unsupported ring_hash hash function", "grpc-cluster!"},
	{"policy by the default hash", "cluster", policies(policy(`ring_hash.v3.RingHash`)), "unsupported ring_hash hash function", "grpc-cluster!"},
	{"load reports to self", "cluster", grpcParts["cluster"] + `, lrs_server: {self: {}}`, "takes", ""},
	{"load reports", "cluster", grpcParts["cluster"] + `, lrs_server: {path_config_source: {path: /l}}`, "in lrs_server field", "grpc-cluster!"},
	{"outliers", "cluster", grpcParts["cluster"] + `, outlier_detection: {interval: 10s, max_ejection_percent: 100, enforcing_success_rate: 0}`, "takes", ""},
	{"too many ejections", "cluster", grpcParts["cluster"] + `, outlier_detection: {max_ejection_percent: 101}`, "must be <= 100", "grpc-cluster!"},
	{"negative interval", "cluster", grpcParts["cluster"] + `, outlier_detection: {interval: -1s}`, "must be a valid duration and >= 0", "grpc-cluster!"},
	// grpc-tls
	{"TLS", "cluster", upstreamTLS(providerCA + `}`), "takes", ""},
	{"TLS without trust", "cluster", upstreamTLS(``), "does not contain root certificate provider instance name", "grpc-tls!"},
	{"trust in a file", "cluster", upstreamTLS(`validation_context: {trusted_ca: {filename: /ca.pem}}`), "ca_certificate_provider_instance is missing", "grpc-tls!"},
	{"trust in the system", "cluster", upstreamTLS(`validation_context: {system_root_certs: {}}`), "ca_certificate_provider_instance is missing", "grpc-tls"},
	{"trust by SDS", "cluster", upstreamTLS(`validation_context_sds_secret_config: {name: ca, sds_config: {path_config_source: {path: /s.json}}}`), "unexpected type", "grpc-tls!"},
	{"certificate by SDS", "cluster", upstreamTLS(providerCA + `}, tls_certificate_sds_secret_configs: [{name: own, sds_config: {path_config_source: {path: /s.json}}}]`), "unsupported field tls_certificate_sds_secret_configs", "grpc-tls!"},
	{"TLS parameters", "cluster", upstreamTLS(providerCA + `}, tls_params: {tls_minimum_protocol_version: TLSv1_2}`), "unsupported tls_params", "grpc-tls!"},
	{"hash of the certificate", "cluster", upstreamTLS(providerCA + `, verify_certificate_hash: ["00"]}`), "unsupported verify_certificate_hash", "grpc-tls!"},
	{"other name of TLS", "cluster", strings.Replace(upstreamTLS(providerCA+`}`), "name: envoy.transport_sockets.tls", "name: tls", 1), "unexpected name", "grpc-tls!"},
	{"no TLS", "cluster", grpcParts["cluster"] + `, transport_socket: {name: envoy.transport_sockets.tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}`, "wrong type_url", "grpc-tls!"},
	{"matches of sockets", "cluster", grpcParts["cluster"] + `, transport_socket_matches: [{name: a, match: {}, transport_socket: {name: envoy.transport_sockets.raw_buffer, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}]`, "unsupported transport_socket_matches", "grpc-tls!"},
	{"TLS of a server", "server", downstreamTLS(``, providerOwn), "takes", ""},
	{"mutual TLS of a server", "server", downstreamTLS(`require_client_certificate: true, `, providerOwn+`, `+providerCA+`}`), "takes", ""},
	{"client certificates without trust", "server", downstreamTLS(`require_client_certificate: true, `, providerOwn), "require_client_cert field is set", "grpc-tls!"},
	{"server without a certificate", "server", downstreamTLS(``, ``), "does not contain identity certificate provider", "grpc-tls!"},
	{"server with names", "server", downstreamTLS(``, providerOwn+`, `+providerCA+`, match_subject_alt_names: [{exact: a}]}`), "not supported on the server", "grpc-tls!"},
	{"SNI", "server", downstreamTLS(`require_sni: true, `, providerOwn), "require_sni", "grpc-tls!"},
	{"OCSP", "server", downstreamTLS(`ocsp_staple_policy: MUST_STAPLE, `, providerOwn), "ocsp_staple_policy", "grpc-tls!"},
	// grpc-endpoints
	{"no locality", "endpoints", `endpoints: [{load_balancing_weight: 1, lb_endpoints: [BACKEND]}]`, "without ID", "grpc-endpoints!"},
	{"no weight", "endpoints", `endpoints: [{locality: {}, lb_endpoints: [BACKEND]}]`, "fails Unavailable", "grpc-endpoints!"},
	{"one of two without a weight", "endpoints", `endpoints: [` + localWith + `]}, {locality: {region: b}, lb_endpoints: [` + elsewhere + `]}]`, "takes", "grpc-endpoints"},
	{"one locality twice", "endpoints", `endpoints: [` + localWith + `]}, {locality: {}, load_balancing_weight: 1, lb_endpoints: [` + elsewhere + `]}]`, "duplicate locality", "grpc-endpoints!"},
	{"one locality at two priorities", "endpoints", `endpoints: [` + localWith + `]}, {locality: {}, priority: 1, load_balancing_weight: 1, lb_endpoints: [` + elsewhere + `]}]`, "takes", ""},
	{"priority left out", "endpoints", `endpoints: [` + localWith + `]}, {locality: {}, priority: 2, load_balancing_weight: 1, lb_endpoints: [` + elsewhere + `]}]`, "priority 1 missing", "grpc-endpoints!"},
	{"one address twice", "endpoints", `endpoints: [` + localWith + `, BACKEND]}]`, "duplicate endpoint with the same address", "grpc-endpoints!"},
	{"endpoint of weight 0", "endpoints", `endpoints: [` + localWith + `, {load_balancing_weight: 0, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]`, "endpoint with zero weight", "grpc-endpoints!"},
	{"too much weight of localities", "endpoints", `endpoints: [` + localWith + `]}, {locality: {region: b}, load_balancing_weight: 4294967295, lb_endpoints: [` + elsewhere + `]}]`, "sum of weights of localities", "grpc-endpoints!"},
	{"too much weight of endpoints", "endpoints", `endpoints: [` + localWith + `, {load_balancing_weight: 4294967295, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]`, "sum of weights of endpoints", "grpc-endpoints!"},
	{"pipe of an endpoint", "endpoints", `endpoints: [{locality: {}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {address: {pipe: {path: /run/a.sock}}}}]}]`, "fails Unavailable", "grpc-endpoints!"},
	// grpc-ignored-field
	{"timeout", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, timeout: 0.000000001s}}`), "takes", "grpc-ignored-field"},
	{"timeout that counts", "routes", routesWith(`{match: {prefix: ""}, route: {cluster: api, max_stream_duration: {max_stream_duration: 0.000000001s}}}`), "fails DeadlineExceeded", ""},
	{"path rewritten", "routes", routesWith(`{match: {prefix: /}, route: {cluster: api, prefix_rewrite: /nowhere/}}`), "takes", "grpc-ignored-field"},
	{"match for gRPC alone", "routes", routesWith(`{match: {prefix: "", grpc: {}}, route: {cluster: api}}`), "takes", "grpc-ignored-field"},
	{"health checks", "cluster", grpcParts["cluster"] + `, health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {}}]`, "takes", "grpc-ignored-field"},
	{"pending requests", "cluster", grpcParts["cluster"] + `, circuit_breakers: {thresholds: [{max_pending_requests: 0, max_connections: 0}]}`, "takes", "grpc-ignored-field"},
	{"requests that count", "cluster", grpcParts["cluster"] + `, circuit_breakers: {thresholds: [{max_requests: 0}]}`, "fails Unavailable", ""},
}

// TestGRPCVerdicts serves resources to clients and servers of grpc-go, and compares their behavior with the
// findings of the profile grpc.
func TestGRPCVerdicts(t *testing.T) {
	port := backend(t)
	for _, v := range grpcVerdicts {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			tree := grpcTreeWith(v, port, l.Addr().(*net.TCPAddr).Port)
			if found := findings(t, tree); !slices.Equal(found, strings.Fields(v.finds)) {
				t.Errorf("xdspub finds %v, not %q", found, v.finds)
			}
			said := &syncBuffer{}
			c := cache.New(cache.Options{Log: event.New(slog.NewTextHandler(said, nil))})
			if err := c.Publish(t.Context(), parse(t, tree)); err != nil {
				t.Fatal(err)
			}
			ends := make(chan string, 1)
			if v.kind == "server" {
				serveBy(t, listen(t, c), l, ends)
			} else {
				conn := dialBy(t, listen(t, c))
				go func() { ends <- call(t.Context(), conn) }()
			}
			if v.grpc == "takes" || strings.HasPrefix(v.grpc, "fails ") {
				select {
				case got := <-ends:
					if got != v.grpc || said.String() != "" {
						t.Errorf("grpc-go: %s, not %s\n%s", got, v.grpc, said)
					}
				case <-time.After(patience):
					t.Errorf("grpc-go: nothing, not %s\n%s", v.grpc, said)
				}
				return
			}
			envoytest.Eventually(t, patience, "grpc-go rejects the resource", func() (bool, string) {
				return strings.Contains(said.String(), v.grpc), said.String()
			})
		})
	}
}

// grpcTreeWith returns the tree of grpcParts, in which the resource of a verdict replaces another resource.
func grpcTreeWith(v grpcVerdict, backend, server int) string {
	types := []struct{ kind, name, of string }{
		{"listener", "name", "listener.v3.Listener"}, {"routes", "name", "route.v3.RouteConfiguration"}, {"cluster", "name", "cluster.v3.Cluster"},
		{"endpoints", "cluster_name", "endpoint.v3.ClusterLoadAssignment"}, {"server", "name", "listener.v3.Listener"},
	}
	var b strings.Builder
	for _, r := range types {
		fields, name := grpcParts[r.kind], "api"
		if r.kind == v.kind {
			fields = v.fields
		}
		if r.kind == "server" {
			name = "server"
		}
		fmt.Fprintf(&b, "- {\"@type\": type.googleapis.com/envoy.config.%s, %s: %s, %s}\n", r.of, r.name, name, fields)
	}
	return strings.NewReplacer(
		"BACKEND", fmt.Sprintf("{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}", backend),
		"ADDRESS", fmt.Sprintf("address: {socket_address: {address: 127.0.0.1, port_value: %d}}", server),
		"PORT", fmt.Sprint(backend),
	).Replace(b.String())
}

// findings returns the codes of the findings in a tree, sorted and without duplicates. The code of an error
// ends with !.
func findings(t *testing.T, tree string) (codes []string) {
	t.Helper()
	loaded := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(tree)})
	for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{Profiles: []validate.Profile{validate.GRPC}, Disable: []string{"orphan-endpoints"}}) {
		code := diag.CodeOf(d.Code)
		if d.Severity == diag.Error {
			code += "!"
		}
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// grpcBootstrap returns the bootstrap of a client or server of grpc-go.
func grpcBootstrap(socket string) []byte {
	return fmt.Appendf(nil, `{"xds_servers": [{"server_uri": "unix:%s", "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
"node": {"id": "client"}, "server_listener_resource_name_template": "server",
"certificate_providers": {"own": {"plugin_name": "file_watcher", "config": {"certificate_file": "/c.pem", "private_key_file": "/k.pem", "ca_certificate_file": "/ca.pem"}}}}`, socket)
}

// dialBy returns a client that finds its backend through the server at a socket. The client stays until the
// test ends, because it sends a NACK only after its calls have failed.
func dialBy(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	resolver, err := xds.NewXDSResolverWithConfigForTesting(grpcBootstrap(socket))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///api", grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// call calls the backend, and returns "takes" or "fails CODE".
func call(ctx context.Context, conn *grpc.ClientConn) string {
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		return "fails " + status.Code(err).String()
	}
	return "takes"
}

// serveBy runs a server of grpc-go that gets its listener from the xDS server at a socket. serveBy sends
// "takes" to ends when the server serves.
func serveBy(t *testing.T, socket string, l net.Listener, ends chan<- string) {
	t.Helper()
	g, err := xds.NewGRPCServer(xds.BootstrapContentsForTesting(grpcBootstrap(socket)), xds.ServingModeCallback(func(_ net.Addr, mode xds.ServingModeChangeArgs) {
		if mode.Mode == connectivity.ServingModeServing {
			ends <- "takes"
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
}
