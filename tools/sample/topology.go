package sample

import (
	"fmt"
	"strings"
)

// Topology is the size of a configuration like that of a large site: clusters with three endpoints each, and
// listeners whose filter chains have a route configuration of ten virtual hosts each.
type Topology struct {
	Clusters, Routes, Listeners int
	// Deprecated is the number of clusters with a deprecated field, which causes a warning.
	Deprecated int
}

// deprecated returns a deprecated field if the i-th cluster has one, and "" otherwise.
func (m Topology) deprecated(i int) string {
	if m.Deprecated == 0 || i%(m.Clusters/m.Deprecated) != 0 {
		return ""
	}
	return "respect_dns_ttl: true\n"
}

// Tree returns the Topology as a source tree, by file name. Endpoint assignments and route configurations are
// separate resources. All resources of a type are in one file.
func (m Topology) Tree() map[string]string {
	all := func(n int, resource func(i, change int) string) string {
		var b strings.Builder
		b.WriteString("resources:\n")
		for i := range n {
			b.WriteString("- " + strings.TrimPrefix(indent("  ", resource(i, 0)), "  "))
		}
		return b.String()
	}
	return map[string]string{
		"clusters.yaml": all(m.Clusters, m.Cluster), "endpoints.yaml": all(m.Clusters, m.Endpoints),
		"routes.yaml": all(m.Routes, m.RouteConfiguration), "listeners.yaml": all(m.Listeners, m.Listener),
	}
}

// Files returns the Topology as a source tree with a file for each resource.
func (m Topology) Files() map[string]string {
	files := make(map[string]string)
	for folder, of := range map[string]struct {
		n        int
		resource func(i, change int) string
	}{
		"clusters": {m.Clusters, m.Cluster}, "endpoints": {m.Clusters, m.Endpoints},
		"routes": {m.Routes, m.RouteConfiguration}, "listeners": {m.Listeners, m.Listener},
	} {
		for i := range of.n {
			files[fmt.Sprintf("%s/%06d.yaml", folder, i)] = of.resource(i, 0)
		}
	}
	return files
}

// Cluster returns the i-th cluster; change varies it.
func (m Topology) Cluster(i, change int) string {
	return fmt.Sprintf(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: service-%05d
connect_timeout: %ds
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
`, i, 1+change) + m.deprecated(i)
}

// Endpoints returns the endpoint assignment of the i-th cluster; change varies it.
func (m Topology) Endpoints(i, change int) string {
	return `"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
` + strings.Replace(assignment(i), "port_value: 8080", fmt.Sprintf("port_value: %d", 8080+change), 1)
}

// RouteConfiguration returns the i-th route configuration; change varies it.
func (m Topology) RouteConfiguration(i, change int) string {
	return `"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
` + strings.Replace(m.routes(i), "{prefix: /}", fmt.Sprintf("{prefix: /%d}", change), min(1, change))
}

// Listener returns the i-th listener; change varies it.
func (m Topology) Listener(i, change int) string {
	return `"@type": type.googleapis.com/envoy.config.listener.v3.Listener
` + m.listener(i, func(route int) string {
		return fmt.Sprintf("rds: {route_config_name: routes-%04d, config_source: {ads: {}}}\n", route)
	}) + fmt.Sprintf("stat_prefix: \"%d\"\n", change)
}

// Bootstrap returns the Topology as static resources. Endpoints stand in their clusters, and routes in their
// listeners, since static resources have no other place for them.
func (m Topology) Bootstrap() string {
	var b strings.Builder
	b.WriteString("static_resources:\n  clusters:\n")
	for i := range m.Clusters {
		fmt.Fprintf(&b, "  - name: service-%05d\n    connect_timeout: 1s\n    type: STATIC\n%s    "+
			"load_assignment:\n%s", i, indent("    ", m.deprecated(i)), indent("      ", assignment(i)))
	}
	b.WriteString("  listeners:\n")
	for i := range m.Listeners {
		text := indent("    ", m.listener(i, func(route int) string { return "route_config:\n" + indent("  ", m.routes(route)) }))
		b.WriteString("  - " + strings.TrimPrefix(text, "    "))
	}
	return b.String()
}

func assignment(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster_name: service-%05d\nendpoints:\n- lb_endpoints:\n", i)
	for e := range 3 {
		fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: 10.%d.%d.%d, port_value: 8080}}}\n", e+3*(i>>16), i>>8&255, i%256)
	}
	return b.String()
}

func (m Topology) routes(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: routes-%04d\nvirtual_hosts:\n", i)
	for host := range 10 {
		fmt.Fprintf(&b, `- name: host-%[1]d
  domains: [host-%[1]d.routes-%04[2]d.example.com]
  routes:
  - match: {prefix: /}
    route: {cluster: service-%05[3]d}
`, host, i, (10*i+host)%m.Clusters)
	}
	return b.String()
}

// listener returns one listener; http gives the routes of a filter chain.
func (m Topology) listener(i int, http func(route int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `name: listener-%03d
address: {socket_address: {address: 127.0.0.1, port_value: %d}}
filter_chains:
`, i, 10000+i)
	chains := m.Routes / m.Listeners
	for c := range chains {
		fmt.Fprintf(&b, `- name: chain-%[1]d
  filter_chain_match: {destination_port: %[2]d}
  filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: http
      http_filters:
      - name: router
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
%[3]s`, c, 20000+c, indent("      ", http(i*chains+c)))
	}
	return b.String()
}

// indent puts a prefix before each line.
func indent(prefix, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(prefix + line)
	}
	return b.String()
}
