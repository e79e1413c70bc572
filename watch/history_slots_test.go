package watch

import (
	"fmt"
	"strings"
)

// slot is a resource that histories edit. Its possible contents are numbered.
type slot struct {
	kind string
	n    int
}

// slots lists all slots.
var slots = func() (list []slot) {
	for _, k := range []struct {
		kind string
		n    int
	}{
		{"cluster", 6}, {"endpoints", 6}, {"endpoint", 4}, {"forward", 2}, {"routes", 3}, {"dynamic", 2}, {"host", 2}, {"scope", 2},
		{"listener", 4}, {"filter", 2}, {"ca", 2}, {"token", 1}, {"layer", 2}, {"cluster variant", 4}, {"routes variant", 2},
	} {
		for n := range k.n {
			list = append(list, slot{k.kind, n})
		}
	}
	return list
}()

// contents exceeds the number of contents of any slot; a number is taken modulo the slot's own count.
const contents = 60

const hcm = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

// text returns a resource as one line of YAML, and the slots that it needs.
func (s slot) text(content int) (text string, needs []slot) {
	at := func(kind string, below int) slot { return slot{kind, content % below} }
	switch s.kind {
	case "cluster":
		return s.cluster(content)
	case "endpoints":
		if content%4 == 3 { // its endpoints come from LEDS
			return typed("config.endpoint.v3.ClusterLoadAssignment", fmt.Sprintf("cluster_name: c%d, endpoints: [{leds_cluster_locality_config: {leds_collection_name: %s/*, leds_config: {ads: {}}}}]",
				s.n, endpointGroup(s.n%2))), []slot{{"endpoint", s.n%2*2 + content/4%2}}
		}
		return typed("config.endpoint.v3.ClusterLoadAssignment", fmt.Sprintf("cluster_name: c%d%s", s.n, pick(content/4,
			"", ", policy: {overprovisioning_factor: 150}", ", endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]"))), nil
	case "endpoint":
		return typed("service.discovery.v3.Resource", fmt.Sprintf("name: %s/e%d, resource: %s", endpointGroup(s.n/2), s.n%2,
			typed("config.endpoint.v3.LbEndpoint", fmt.Sprintf("endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}", 10+content%3)))), nil
	case "forward": // both share a DNS cache, whose settings must be equal
		return typed("config.cluster.v3.Cluster", fmt.Sprintf("name: f%d, connect_timeout: %ds, lb_policy: CLUSTER_PROVIDED, cluster_type: {name: forward, typed_config: %s}", s.n, 1+content%2,
			typed("extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig", dnsCache(content/2)))), nil
	case "routes":
		to := at("cluster", 6)
		name := fmt.Sprint("c", to.n)
		if content%5 == 4 {
			to = slot{"cluster variant", content%2*2 + 1}
			name = fmt.Sprint("v", to.n/2)
		}
		return typed("config.route.v3.RouteConfiguration", fmt.Sprintf(`name: r%d, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: %s}}%s]}]%s`,
			s.n, name, pick(content, "", "", "", `, {match: {prefix: /a}, direct_response: {status: 200}}`), share(content/6))), []slot{to} // no request reaches the last route
	case "dynamic":
		return typed("config.route.v3.RouteConfiguration", fmt.Sprintf("name: d%d, vhds: {config_source: {ads: {}}}%s", s.n, pick(content, "", ", ignore_port_in_host_matching: true"))), nil
	case "host":
		return typed("service.discovery.v3.Resource", fmt.Sprintf("name: d%[1]d/h, resource: %s", s.n, typed("config.route.v3.VirtualHost", "name: h, domains: ["+pick(content, "h", "h, i")+"]"))), []slot{{"dynamic", s.n}}
	case "scope":
		to := at("routes", 3)
		return typed("config.route.v3.ScopedRouteConfiguration", fmt.Sprintf("name: s%d, route_configuration_name: r%d, key: {fragments: [{string_key: k%d}]}", s.n, to.n, 2*s.n+content%2)), []slot{to}
	case "listener":
		return s.listener(content)
	case "cluster variant", "routes variant":
		return s.variant(content)
	case "filter":
		return typed("config.core.v3.TypedExtensionConfig", fmt.Sprintf("name: x%d, typed_config: %s", s.n,
			typed("extensions.filters.http.header_mutation.v3.HeaderMutation", pick(content, "", "mutations: {response_mutations: [{remove: x}]}")))), nil
	case "ca":
		from := pick(content, "inline_string: x", "inline_string: z", "filename: ca.txt")
		return typed("extensions.transport_sockets.tls.v3.Secret", fmt.Sprintf("name: a%d, validation_context: {trusted_ca: {%s}}", s.n, from)), nil
	case "token":
		return typed("extensions.transport_sockets.tls.v3.Secret", fmt.Sprintf("name: t%d, generic_secret: {secret: {inline_string: %s}}", s.n, pick(content, "x", "z"))), nil
	default:
		return typed("service.runtime.v3.Runtime", fmt.Sprintf("name: l%d, layer: {a: %s}", s.n, pick(content, "1", "2", "x"))), nil
	}
}

func (s slot) cluster(content int) (text string, needs []slot) {
	own := slot{"endpoints", s.n}
	more := ""
	switch content % 7 {
	case 0:
		needs = []slot{own}
	case 1:
		more, needs = ", connect_timeout: 3s", []slot{own}
	case 2:
		return typed("config.cluster.v3.Cluster", fmt.Sprintf("name: c%d, type: STATIC", s.n)), nil
	case 3:
		other := slot{"endpoints", (s.n + 1) % 6}
		more, needs = fmt.Sprintf(", eds_cluster_config: {service_name: c%d}", other.n), []slot{other}
	case 4, 5:
		ca := slot{"ca", content % 2}
		more = fmt.Sprintf(", transport_socket: {name: tls, typed_config: %s}", typed("extensions.transport_sockets.tls.v3.UpstreamTlsContext",
			fmt.Sprintf("common_tls_context: {validation_context_sds_secret_config: {name: a%d%s}}", ca.n, pick(content/7, "", ", sds_config: {ads: {}}"))))
		needs = []slot{own, ca}
	case 6: // a deprecated field, and another stat prefix
		more, needs = ", alt_stat_name: other, respect_dns_ttl: true", []slot{own}
	}
	return typed("config.cluster.v3.Cluster", fmt.Sprintf("name: c%d, type: EDS%s", s.n, more)), needs
}

// variant returns one of the two variants of a resource. In most cases each client gets one of them.
func (s slot) variant(content int) (text string, needs []slot) {
	name, to := fmt.Sprint("v", s.n/2), slot{"endpoints", content % 6}
	resource := typed("config.cluster.v3.Cluster", fmt.Sprintf("name: %s, type: EDS, eds_cluster_config: {service_name: c%d}", name, to.n))
	if s.kind == "routes variant" {
		name, to = "w", slot{"cluster", content % 6}
		resource = typed("config.route.v3.RouteConfiguration", fmt.Sprintf(`name: %s, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: c%d}}]}]`, name, to.n))
	}
	const prod = "constraint: {key: env, value: prod}"
	of := prod
	if s.n%2 == 1 {
		of = "not_constraints: {" + prod + "}"
	}
	switch content {
	case 0: // which may leave a variant gap
		of = "constraint: {key: env, value: test}"
	case 1, 2: // which overlaps with the other variant
		of = "constraint: {key: env, exists: {}}"
	}
	return typed("service.discovery.v3.Resource", fmt.Sprintf("resource_name: {name: %s, dynamic_parameter_constraints: {%s}}, resource: %s", name, of, resource)), []slot{{s.kind, s.n ^ 1}, to}
}

func (s slot) listener(content int) (text string, needs []slot) {
	routes, filter, inner := slot{"routes", content % 3}, slot{"filter", content % 2}, ""
	if content%7 > 4 {
		routes = slot{"dynamic", content % 2}
	}
	limits := fmt.Sprintf("{name: share, typed_config: %s}, ", typed("extensions.filters.http.bandwidth_share.v3.BandwidthShare", "request_limit: {bucket_id: own, kbps: {default_value: 7, runtime_key: k}}"))
	name := fmt.Sprintf("%.1s%d", routes.kind, routes.n)
	if content%11 == 10 {
		routes, name = slot{"routes variant", 1}, "w"
	}
	from := fmt.Sprintf("rds: {route_config_name: %s, config_source: {ads: {}}}", name)
	needs = []slot{routes}
	switch content / 3 % 5 {
	case 1: // a filter by ECDS
		inner = fmt.Sprintf("{name: x%d, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation]}}, ", filter.n)
		needs = append(needs, filter)
	case 2: // scoped routes
		from = "scoped_routes: {name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: x, index: 0}}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}"
		needs = []slot{{"scope", content % 2}}
	case 3: // the DNS cache of clusters
		inner = fmt.Sprintf("{name: forward, typed_config: %s}, ", typed("extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig", dnsCache(content/15)))
	case 4:
		to := slot{"cluster", content % 6}
		return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: i%d, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [{name: tcp, typed_config: %s}]}]}`,
			s.n, 10000+(2*s.n+content/15)%8, typed("extensions.filters.network.tcp_proxy.v3.TcpProxy", fmt.Sprintf("stat_prefix: tcp, cluster: c%d", to.n))), []slot{to}
	}
	// Several slots of listeners have the same ports, so listeners move and exchange ports.
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: i%d, address: {socket_address: {address: 127.0.0.1, port_value: %d}}%s, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": %s, stat_prefix: in, %s, http_filters: [%s%s{name: router, typed_config: %s}]}}]}]}`,
		s.n, 10000+(2*s.n+content/15)%8, pick(content, "", ", reuse_port: false"), hcm, from, limits, inner, typed("extensions.filters.http.router.v3.Router", "")), needs
}

// endpointGroup returns the name of a collection of endpoints, without the /* at its end.
func endpointGroup(n int) string {
	return fmt.Sprintf("xdstp://a/envoy.config.endpoint.v3.LbEndpoint/g%d", n)
}

// share returns a filter with a bandwidth bucket that route configurations share; empty for most contents. The
// settings of the bucket depend on content.
func share(content int) string {
	if content%3 > 0 {
		return ""
	}
	return fmt.Sprintf(`, typed_per_filter_config: {share: %s}`, typed("extensions.filters.http.bandwidth_share.v3.BandwidthShare",
		fmt.Sprintf("request_limit: {bucket_id: b, kbps: {default_value: %s, runtime_key: k}}", pick(content/3, "100", "100", "200"))))
}

func dnsCache(content int) string {
	return "dns_cache_config: {name: hosts" + pick(content, "", "", "", "", "", "", "", ", dns_lookup_family: V4_ONLY") + "}"
}

// typed returns a message of Envoy's API.
func typed(message, fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.%s%s}`, strings.TrimSpace(message), fields)
}

func pick(content int, from ...string) string { return from[content%len(from)] }
